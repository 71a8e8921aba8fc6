import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf, jidOf, lidOf, phoneOfLid } from '../src/addresses.js'
import { encodeBigEndian, newPair, node, unbase64 } from '../src/codec.js'
import { Phones } from '../src/phones.js'
import { CompanionKeys } from '../src/prekeys.js'
import { type CompanionRecord, openRecords } from '../src/records.js'
import { Store } from '../src/state.js'

const ADDRESS = { phone: '15557776001', device: 1 }

function uploaded(ids: readonly number[]) {
  return ids.map(id => {
    const value = unbase64(newPair().public)
    return node('key', {}, [node('id', {}, encodeBigEndian(id, 3)), node('value', {}, value)])
  })
}

function companionKeys(onLow: (left: number) => void = () => undefined): CompanionKeys {
  const records = openRecords(new Store(null))
  const key = newPair().public
  const companion: CompanionRecord = {
    ...ADDRESS,
    name: 'test',
    noiseKey: key,
    identityKey: key,
    registrationId: 7,
    signedPreKey: { id: 1, key, signature: key },
    signedIdentity: key,
    linked: true,
    logins: 0,
    historySent: false
  }
  records.companions.set('15557776001:1', companion)
  return new CompanionKeys(records, (_address, left) => onLow(left))
}

test('every number has a LID of its own, and every LID leads back to its number', () => {
  const phones = ['10000', '15551', '155512', '1555123', '999999999999999', '4915112345678', '4915112345679']
  assert.equal(new Set(phones.map(lidOf)).size, phones.length)
  for (const phone of phones) {
    assert.equal(phoneOfLid(lidOf(phone)), phone)
    assert.match(lidOf(phone), /^\d{16}$/)
    assert.deepEqual(addressOf(jidOf({ phone, device: 3 }, 'lid')), { phone, device: 3 })
    assert.deepEqual(addressOf(jidOf({ phone, device: 0 }, 'pn')), { phone, device: 0 })
  }
  assert.equal(addressOf('123-456@g.us'), null)
  assert.equal(addressOf('@s.whatsapp.net'), null)
})

test('a one-time key is handed out once; then only the signed key remains', () => {
  const keys = companionKeys()
  keys.upload(ADDRESS, uploaded([11, 12]))
  assert.equal(keys.count(ADDRESS), 2)
  assert.deepEqual(
    [keys.take(ADDRESS), keys.take(ADDRESS), keys.take(ADDRESS)].map(bundle => bundle?.preKey?.id ?? null),
    [11, 12, null]
  )
  assert.equal(keys.count(ADDRESS), 0)
})

test('the client is asked for more keys when few are left, and new ones follow the old', () => {
  const asked: number[] = []
  const keys = companionKeys(left => asked.push(left))
  keys.upload(ADDRESS, uploaded([1, 2, 3, 4, 5, 6]))
  keys.take(ADDRESS)
  assert.deepEqual(asked, [])
  keys.take(ADDRESS)
  assert.deepEqual(asked, [4])
  keys.upload(ADDRESS, uploaded([6, 7]))
  assert.equal(keys.count(ADDRESS), 5)
  const ids = Array.from({ length: 5 }, () => keys.take(ADDRESS)?.preKey?.id)
  assert.deepEqual(ids, [3, 4, 5, 6, 7])
})

test('a phone keeps its keys, and never gives the same one-time key twice', () => {
  const records = openRecords(new Store(null))
  const phones = new Phones(records)
  const first = phones.of('15550001111').bundle()
  const second = phones.of('15550001111').bundle()
  assert.deepEqual(first.identityKey, second.identityKey)
  assert.notEqual(first.preKey?.id, second.preKey?.id)
  const again = new Phones(records).of('15550001111').bundle()
  assert.deepEqual(again.identityKey, first.identityKey)
  assert.equal(again.preKey?.id, 3)
})
