import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asksForPasskey, letterIn, phoneOf, receiptsIn, type Stanza, userOf } from '../src/stanzas.js'

const NOW = 1_763_200_000_000
const ME = ['972500000001', '111222333']
const OURS = '3EB0A1B2C3D4E5F6A7B8C9'
const stanza = (tag: string, attrs: Record<string, string>, content?: Stanza[]): Stanza => ({ tag, attrs, content })

test('a number is read from addresses of persons with and without a device, never from a LID', () => {
  assert.equal(phoneOf('972501234567@s.whatsapp.net'), '972501234567')
  assert.equal(phoneOf('972501234567:3@s.whatsapp.net'), '972501234567')
  assert.equal(phoneOf('111222333@lid'), null)
  assert.equal(phoneOf('120363000000000000@g.us'), null)
  assert.equal(userOf('111222333:2@lid'), '111222333')
  assert.equal(userOf('status@broadcast'), null)
})

const from = '972501234567@s.whatsapp.net'
for (const [type, event] of [
  [undefined, 'MESSAGE_DELIVERED'],
  ['inactive', 'MESSAGE_DELIVERED'],
  ['read', 'MESSAGE_READ']
] as const) {
  test(`a receipt of type ${type} says ${event}`, () => {
    const receipt = stanza('receipt', { from, id: OURS, t: '1763199990', ...(type ? { type } : {}) })
    assert.deepEqual(receiptsIn(receipt, ME, NOW), [{ type: event, whatsappId: OURS, timestamp: 1_763_199_990_000 }])
  })
}

test('one receipt may speak of several messages', () => {
  const second = '3EB000000000000000000A'
  const list = stanza('list', {}, [stanza('item', { id: second })])
  const ids = receiptsIn(stanza('receipt', { from: '777@lid', id: OURS, type: 'read' }, [list]), ME, NOW)
  assert.deepEqual(
    ids.map(one => one.whatsappId),
    [OURS, second]
  )
})

for (const [why, attrs] of [
  ['of a message that is not ours', { from, id: 'A5B6C7' }],
  ['of our own other device', { from: '111222333:0@lid', id: OURS }],
  ['of our own number', { from: '972500000001@s.whatsapp.net', id: OURS }],
  ['that asks for the message again', { from, id: OURS, type: 'retry' }],
  ['of a group', { from: '120363000000000000@g.us', id: OURS }],
  ['that our phone read something', { from, id: OURS, type: 'read', recipient: from }]
] as const) {
  test(`no word of a receipt ${why}`, () => assert.deepEqual(receiptsIn(stanza('receipt', attrs), ME, NOW), []))
}

test('a letter from a LID bears the number that WhatsApp says along with it', () => {
  const letter = letterIn(
    stanza('message', { from: '777@lid', sender_pn: from, id: 'X1', t: '1763199990', offline: '0' }),
    ME,
    NOW
  )
  assert.deepEqual(letter, {
    id: 'X1',
    from: '777@lid',
    phone: '972501234567',
    timestamp: 1_763_199_990_000,
    backfilled: true
  })
})

for (const [why, attrs] of [
  ['our own phone wrote', { from: '972500000001@s.whatsapp.net', recipient: from, id: 'X' }],
  ['our own devices exchange', { from: '972500000001:0@s.whatsapp.net', category: 'peer', id: 'X' }],
  ['came in a group', { from: '120363000000000000@g.us', participant: from, id: 'X' }],
  ['came as a status', { from: 'status@broadcast', participant: from, id: 'X' }]
] as const) {
  test(`what ${why} is no letter`, () => assert.equal(letterIn(stanza('message', attrs), ME, NOW), null))
}

test('an id that the server would not take is told by its hash, which is the same each time', () => {
  const idOf = (id: string): string => letterIn(stanza('message', { from, id }), ME, NOW)?.id ?? ''
  for (const plain of ['3EB0A1B2C3', 'false_1.2-3', 'x'.repeat(128)]) assert.equal(idOf(plain), plain)
  for (const odd of ['odd/id with spaces', 'x'.repeat(129), '', 'ש', 'a\nb', 'a\n']) {
    assert.match(idOf(odd), /^[0-9a-f]{64}$/, JSON.stringify(odd))
    assert.equal(idOf(odd), idOf(odd))
  }
  assert.notEqual(idOf('odd/1'), idOf('odd/2'))
})

test('a clock that WhatsApp sets into the future, or nonsense, is not believed', () => {
  for (const t of ['99999999999', 'soon', '-1', '0']) {
    assert.equal(letterIn(stanza('message', { from, id: 'X', t }), ME, NOW)?.timestamp, NOW)
  }
})

test('a passkey is asked for by a notification', () => {
  assert.equal(asksForPasskey(stanza('notification', { type: 'passkey_prologue_request' })), true)
  assert.equal(asksForPasskey(stanza('notification', { type: 'encrypt' })), false)
})
