import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startWhatsApp } from '../src/server.js'
import type { WhatsApp } from '../src/types.js'
import { type Client, paired, until } from './client.js'

const ALICE = '15557770001'
const BOB = '4915112345678'

let whatsapp: WhatsApp
let alice: Client

before(async () => {
  whatsapp = await startWhatsApp({ dataDir: null })
  alice = await paired(whatsapp, ALICE, 'Alice')
})

after(async () => {
  await alice.end()
  await whatsapp.close()
})

test('a message is acknowledged, shown, delivered, and read when its recipient reads it', async () => {
  await alice.send(BOB, 'hello', 'M1')
  await alice.ack('M1')
  await alice.status('M1', 3)
  const [shown] = whatsapp.shown({ to: BOB })
  assert.equal(shown?.text, 'hello')
  assert.equal(shown?.from, ALICE)
  assert.equal(shown?.stanzas, 1)
  assert.equal(await whatsapp.read(BOB, ALICE), 1)
  await alice.status('M1', 4)
  assert.equal(await whatsapp.read(BOB, ALICE), 0)
  await assert.rejects(whatsapp.read(BOB, ALICE, 'M0'), { name: 'Refused' })
})

test('all unread messages of a chat become read at once', async () => {
  for (const id of ['R1', 'R2', 'R3']) await alice.send(BOB, id, id)
  for (const id of ['R1', 'R2', 'R3']) await alice.status(id, 3)
  assert.equal(await whatsapp.read(BOB, ALICE), 3)
  for (const id of ['R1', 'R2', 'R3']) await alice.status(id, 4)
})

test('people read by themselves if they are told to', async () => {
  whatsapp.behave({ readAfterMs: 10, deliveredAfterMs: 0 })
  await alice.send(BOB, 'read me', 'A1')
  await alice.status('A1', 4)
  whatsapp.behave({ readAfterMs: null })
})

test('listeners hear of a message once, and not after they stopped', async () => {
  const heard: string[] = []
  const stop = whatsapp.onShown(({ id }) => heard.push(id))
  await alice.send(BOB, 'one', 'L1')
  await alice.ack('L1')
  stop()
  await alice.send(BOB, 'two', 'L2')
  await alice.ack('L2')
  assert.deepEqual(heard, ['L1'])
})

test('the same id twice is acknowledged twice and shown once', async () => {
  await alice.send(BOB, 'once', 'D1')
  await alice.status('D1', 3)
  await alice.send(BOB, 'once', 'D1')
  await until('a second ack', () => alice.acks.filter(({ attrs }) => attrs['id'] === 'D1').length === 2)
  const shown = whatsapp.shown({ from: ALICE }).filter(({ id }) => id === 'D1')
  assert.deepEqual(
    shown.map(({ stanzas }) => stanzas),
    [2]
  )
})

test('a number without WhatsApp is not found, and a message to it is lost in silence', async () => {
  const nobody = '15550009999'
  whatsapp.setAbsent([nobody], true)
  assert.deepEqual(await alice.socket.onWhatsApp(nobody), [])
  await alice.send(nobody, 'lost', 'S1')
  await alice.ack('S1')
  const [wire] = whatsapp.wire({ to: nobody })
  assert.equal(wire?.text, null)
  assert.equal(wire?.answer, 'ack')
  assert.deepEqual(
    wire?.devices.filter(jid => !jid.startsWith(ALICE)),
    []
  )
  // The receipt of a later message shows that none is on its way any more.
  await alice.send(BOB, 'marker', 'S2')
  await alice.status('S2', 3)
  assert.deepEqual(whatsapp.shown({ to: nobody }), [])
  assert.ok(alice.statuses.get('S1')?.every(status => status < 3) ?? true)

  whatsapp.setAbsent([nobody], false)
  assert.equal((await alice.socket.onWhatsApp(nobody))?.[0]?.exists, true)
})

test('an unanswered look-up of devices is a silent loss too', async () => {
  const carol = '15550003333'
  whatsapp.addFault({ kind: 'mute', request: 'usync:get:usync', times: 1 })
  await alice.send(carol, 'lost', 'U1')
  await alice.ack('U1')
  assert.deepEqual(whatsapp.shown({ to: carol }), [])
  assert.equal(whatsapp.wire({ to: carol })[0]?.text, null)
})

test('a message to oneself is shown on the own phone', async () => {
  await alice.send(ALICE, 'note', 'N1')
  await alice.ack('N1')
  assert.equal(whatsapp.shown({ to: ALICE })[0]?.text, 'note')
})

test('receipts wait while the sender is away and come after the login', async () => {
  whatsapp.behave({ deliveredAfterMs: 60_000 })
  await alice.send(BOB, 'later', 'W1')
  await alice.ack('W1')
  whatsapp.behave({ deliveredAfterMs: 0 })
  await alice.kill()
  await until('being offline', () => !whatsapp.accounts()[0]?.online)
  assert.equal(await whatsapp.read(BOB, ALICE, 'W1'), 1)
  assert.equal(whatsapp.accounts()[0]?.waiting, 1)
  await alice.reconnect()
  await alice.status('W1', 4)
  await until('nothing waiting', () => whatsapp.accounts()[0]?.waiting === 0)
})

test('what the phone cannot decrypt is asked for again and shown then', async () => {
  whatsapp.addFault({ kind: 'undecryptable', phone: ALICE, times: 2 })
  await alice.send(BOB, 'again', 'T1')
  await until('the message', () => whatsapp.shown({ to: BOB }).some(({ id }) => id === 'T1'))
  await alice.status('T1', 3)
  const shown = whatsapp.shown({ to: BOB }).filter(({ id }) => id === 'T1')
  assert.deepEqual(
    shown.map(({ text, stanzas }) => ({ text, stanzas })),
    [{ text: 'again', stanzas: 3 }]
  )
})

test('a message key that is used twice is not shown, and the phone asks for the message again', async () => {
  const dave = '15550004444'
  await alice.send(dave, 'first', 'K1')
  await alice.status('K1', 3)
  const before = alice.memory.snapshot()
  await alice.send(dave, 'second', 'K2')
  await alice.status('K2', 3)
  // The client forgets that it sent the second message, and so encrypts the third with the same key.
  alice.memory.restoreKeys(before)
  alice.nodes.length = 0
  await alice.send(dave, 'third', 'K3')
  await until('a retry receipt', () => {
    return alice.nodes.some(({ tag, attrs }) => tag === 'receipt' && attrs['type'] === 'retry' && attrs['id'] === 'K3')
  })
  assert.equal(whatsapp.wire({ to: dave }).find(({ id }) => id === 'K3')?.text, null)
  await until('the third message', () => whatsapp.shown({ to: dave }).some(({ id }) => id === 'K3'))
})

test('requests are counted by name', () => {
  const requests = whatsapp.requests()
  assert.ok((requests['usync:get:usync'] ?? 0) > 0)
  assert.equal(requests['encrypt:set:registration'], 1)
})
