import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { startWhatsApp } from '../src/server.js'
import type { FaultKind, WhatsApp } from '../src/types.js'
import { Client, paired, until } from './client.js'

const ALICE = '15557774001'
const BOB = '4915112345680'

/** Long enough for a slow machine; an answer ends the wait. */
const PATIENT_MS = 5000

let whatsapp: WhatsApp
let alice: Client

before(async () => {
  whatsapp = await startWhatsApp({ dataDir: null })
  alice = await paired(whatsapp, ALICE, 'Alice')
  await alice.send(BOB, 'warm up', 'WARM')
  await alice.status('WARM', 3)
})

after(async () => {
  await alice.end()
  await whatsapp.close()
})

function shownIds(): string[] {
  return whatsapp.shown({ from: ALICE }).map(({ id }) => id)
}

function answerTo(id: string): string | undefined {
  return whatsapp.wire({ from: ALICE }).findLast(message => message.id === id)?.answer
}

/** A request that shows whether the server still talks. */
async function isAnswered(client: Client, ms: number): Promise<boolean> {
  const query = { tag: 'iq', attrs: { to: '@s.whatsapp.net', type: 'get', xmlns: 'w:p' }, content: [] }
  const answer: unknown = await client.socket.query(query, ms).catch(() => undefined)
  return answer !== undefined
}

test('login_failure: the login is refused with the code', async () => {
  whatsapp.addFault({ kind: 'login_failure', phone: ALICE, code: 503, times: 1 })
  await alice.end()
  alice.connect()
  assert.equal((await alice.ending()).code, 503)
  await alice.reconnect()
})

test('ack_error: the message is refused and not kept', async () => {
  whatsapp.addFault({ kind: 'ack_error', phone: ALICE, code: 429, times: 1 })
  await alice.send(BOB, 'too fast', 'E1')
  await alice.status('E1', 0)
  assert.equal((await alice.ack('E1')).attrs['error'], '429')
  assert.equal(answerTo('E1'), '429')
  assert.equal(shownIds().includes('E1'), false)
})

test('ack_error 463 with a duration restricts the account for that long', async () => {
  assert.equal((await alice.socket.fetchAccountReachoutTimelock()).isActive, false)
  whatsapp.addFault({ kind: 'ack_error', phone: ALICE, code: 463, ms: 3_600_000, times: 1 })
  await alice.send(BOB, 'restricted', 'E2')
  await alice.status('E2', 0)
  const { isActive, timeEnforcementEnds } = await alice.socket.fetchAccountReachoutTimelock()
  assert.equal(isActive, true)
  const left = (timeEnforcementEnds?.getTime() ?? 0) - Date.now()
  assert.ok(left > 3_500_000 && left < 3_700_000)
})

test('drop_before_ack: the message is kept though the connection ends, and a second sending is not shown again', async () => {
  whatsapp.addFault({ kind: 'drop_before_ack', phone: ALICE, times: 1 })
  await alice.send(BOB, 'kept', 'B1')
  assert.equal((await alice.ending()).code, 428)
  assert.equal(answerTo('B1'), 'none')
  assert.equal(shownIds().includes('B1'), true)
  await alice.reconnect()
  await alice.send(BOB, 'kept', 'B1')
  await alice.ack('B1')
  const shown = whatsapp.shown({ from: ALICE }).filter(({ id }) => id === 'B1')
  assert.deepEqual(
    shown.map(({ stanzas }) => stanzas),
    [2]
  )
})

test('drop_message: the connection ends and the message was never taken', async () => {
  whatsapp.addFault({ kind: 'drop_message', phone: ALICE, times: 1 })
  await alice.send(BOB, 'gone', 'G1').catch(() => undefined)
  assert.equal((await alice.ending()).code, 428)
  assert.equal(shownIds().includes('G1'), false)
  await alice.reconnect()
})

test('no_ack: the message is kept, nothing is said, the connection stays', async () => {
  whatsapp.addFault({ kind: 'no_ack', phone: ALICE, times: 1 })
  await alice.send(BOB, 'unanswered', 'N1')
  await alice.send(BOB, 'answered', 'N2')
  await alice.ack('N2')
  assert.equal(
    alice.acks.some(({ attrs }) => attrs['id'] === 'N1'),
    false
  )
  assert.equal(shownIds().includes('N1'), true)
})

test('mute and slow: only the named request, and only as often as asked for', async () => {
  whatsapp.addFault({ kind: 'mute', phone: ALICE, request: 'w:p:get:-', times: 1 })
  assert.equal(await isAnswered(alice, 150), false)
  assert.equal(await isAnswered(alice, PATIENT_MS), true)
  whatsapp.addFault({ kind: 'slow', phone: ALICE, request: 'usync:get:usync', ms: 200, times: 1 })
  const start = performance.now()
  const answers: string[] = []
  await Promise.all([
    alice.socket.onWhatsApp(BOB).then(() => answers.push('slow')),
    isAnswered(alice, PATIENT_MS).then(() => answers.push('other'))
  ])
  assert.deepEqual(answers, ['other', 'slow'])
  assert.ok(performance.now() - start >= 195)
})

test('silence: the connection stays and nothing is said on it any more', async () => {
  whatsapp.addFault({ kind: 'silence', phone: ALICE, times: 1 })
  assert.equal(await isAnswered(alice, 150), false)
  assert.equal(await isAnswered(alice, 150), false)
  assert.equal(alice.socket.ws.isOpen, true)
  await alice.end()
  await alice.reconnect()
  assert.equal(await isAnswered(alice, PATIENT_MS), true)
})

test('no_prekeys: nobody can be written to for the first time', async () => {
  const fault = whatsapp.addFault({ kind: 'no_prekeys', phone: ALICE })
  await assert.rejects(alice.send('15550005555', 'no keys', 'P1'), /item-not-found/)
  assert.equal(whatsapp.removeFault(fault.id), true)
  await alice.send('15550005555', 'keys', 'P2')
  await alice.status('P2', 3)
})

test('no_receipts: the message is shown and nobody says so', async () => {
  whatsapp.addFault({ kind: 'no_receipts', phone: ALICE, times: 1 })
  await alice.send(BOB, 'unseen', 'Q1')
  await alice.ack('Q1')
  await alice.send(BOB, 'seen', 'Q2')
  await alice.status('Q2', 3)
  assert.equal(shownIds().includes('Q1'), true)
  assert.ok(alice.statuses.get('Q1')?.every(status => status < 3) ?? true)
})

test('http_error: the websocket is refused with the code', async () => {
  whatsapp.addFault({ kind: 'http_error', code: 429, times: 1 })
  const client = new Client(whatsapp)
  const [, response] = await once(client.socket.ws, 'unexpected-response')
  assert.equal(response.statusCode, 429)
  await client.end()
})

test('a fault for one account leaves the others alone, counts its hits and ends by itself', async () => {
  const other = whatsapp.addFault({ kind: 'ack_error', phone: '15550000000', code: 429 })
  const mine = whatsapp.addFault({ kind: 'mute', request: 'w:p:get:-', times: 2 })
  await isAnswered(alice, 20)
  const [, struck] = whatsapp.faults()
  assert.deepEqual(struck, { ...mine, hits: 1, times: 1 })
  await isAnswered(alice, 20)
  assert.deepEqual(
    whatsapp.faults().map(({ id, hits }) => ({ id, hits })),
    [{ id: other.id, hits: 0 }]
  )
  assert.equal(whatsapp.removeFault(mine.id), false)
  assert.equal(whatsapp.removeFault(other.id), true)
})

test('faults that make no sense are refused', () => {
  const refused = { name: 'Refused' }
  assert.throws(() => whatsapp.addFault({ kind: 'nonsense' as FaultKind }), refused)
  assert.throws(() => whatsapp.addFault({ kind: 'http_error', phone: ALICE }), refused)
  assert.throws(() => whatsapp.addFault({ kind: 'slow', ms: -1 }), refused)
  assert.throws(() => whatsapp.addFault({ kind: 'no_ack', times: 0 }), refused)
})

test('the connection can be ended in every way a real one ends', async () => {
  const ends: [() => void, number][] = [
    [() => whatsapp.drop(ALICE), 428],
    [() => whatsapp.streamError(ALICE, 503), 503],
    [() => whatsapp.replace(ALICE), 440]
  ]
  for (const [end, code] of ends) {
    end()
    assert.equal((await alice.ending()).code, code)
    await alice.reconnect()
  }
})

test('a second socket of the same device replaces the first', async () => {
  const first = alice.updates
  await alice.reconnect()
  const ending = await until('the end of the first', () => first.find(({ connection }) => connection === 'close'))
  assert.match(String(ending.lastDisconnect?.error), /conflict/)
  assert.equal(whatsapp.accounts()[0]?.online, true)
})

test('a banned account is cut off and refused until it is unbanned', async () => {
  whatsapp.ban(ALICE)
  assert.equal((await alice.ending()).code, 403)
  alice.connect()
  assert.equal((await alice.ending()).code, 403)
  assert.equal(whatsapp.accounts()[0]?.banned, true)
  whatsapp.unban(ALICE)
  await alice.reconnect()
})

test('a removed device is cut off and stays refused', async () => {
  whatsapp.logOut(ALICE)
  assert.equal((await alice.ending()).code, 401)
  alice.connect()
  assert.equal((await alice.ending()).code, 401)
  assert.equal(whatsapp.accounts()[0]?.linked, false)
})

test('a device that logs itself out is unlinked', async () => {
  const carol = await paired(whatsapp, '15557774002')
  await carol.socket.logout()
  await until('being unlinked', () =>
    whatsapp.accounts().some(({ phone, linked }) => phone === '15557774002' && !linked)
  )
})
