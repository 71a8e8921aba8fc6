import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startWhatsApp } from '../src/server.js'
import type { WhatsApp } from '../src/types.js'
import { type Client, paired, until } from './client.js'

const ALICE = '15557773001'
const BOB = '15557773002'

let whatsapp: WhatsApp
let alice: Client
let bob: Client

before(async () => {
  whatsapp = await startWhatsApp({ dataDir: null })
  alice = await paired(whatsapp, ALICE, 'Alice')
  bob = await paired(whatsapp, BOB, 'Bob')
})

after(async () => {
  await alice.end()
  await bob.end()
  await whatsapp.close()
})

test('two linked accounts write to each other, on the phone and on the linked device', async () => {
  await alice.send(BOB, 'ping', 'P1')
  await until('the ping', () => bob.inbox().includes('ping'))
  assert.equal(whatsapp.shown({ to: BOB })[0]?.text, 'ping')
  assert.equal(bob.received.find(({ key }) => key.id === 'P1')?.pushName, 'Alice')
  await bob.send(ALICE, 'pong', 'P2')
  await until('the pong', () => alice.inbox().includes('pong'))
  await alice.status('P1', 3)
  await bob.status('P2', 3)
})

test('reading on the linked device tells the sender', async () => {
  await alice.send(BOB, 'read this', 'Q1')
  const message = await until('the message', () => bob.received.find(({ key }) => key.id === 'Q1'))
  await bob.socket.readMessages([message.key])
  await alice.status('Q1', 4)
  assert.equal(whatsapp.shown({ to: BOB }).find(({ id }) => id === 'Q1')?.read, true)
})

test('a message waits for a linked device that is away', async () => {
  await bob.kill()
  await until('Bob offline', () => whatsapp.accounts().some(({ phone, online }) => phone === BOB && !online))
  await alice.send(BOB, 'while away', 'O1')
  await alice.ack('O1')
  await bob.reconnect()
  await until('the message', () => bob.inbox().includes('while away'))
})

test('a linked device that cannot read asks the other linked device and gets it again', async () => {
  alice.nodes.length = 0
  bob.memory.forget('session')
  await alice.send(BOB, 'unreadable', 'X1')
  await until('a retry receipt of the device', () => {
    return alice.nodes.some(({ attrs }) => attrs['type'] === 'retry' && attrs['from'] === `${BOB}:1@s.whatsapp.net`)
  })
  await until('the message', () => bob.inbox().includes('unreadable'))
})

test('what the owner writes on the phone appears on the linked device', async () => {
  const id = await whatsapp.sendFrom(ALICE, BOB, 'from my phone')
  await until('the message', () => bob.inbox().includes('from my phone'))
  const copy = await until('the copy', () => alice.received.find(({ key }) => key.id === id))
  assert.equal(copy.key.fromMe, true)
  assert.equal(copy.message?.conversation, 'from my phone')
})

test('a second device of the same account sees what the first one sends', async () => {
  const second = await paired(whatsapp, ALICE, 'Alice')
  await alice.send(BOB, 'to both', 'Z1')
  const copy = await until('the copy', () => second.received.find(({ key }) => key.id === 'Z1'))
  assert.equal(copy.key.fromMe, true)
  await second.end()
})

test('a device that was linked in the middle of a conversation gets what comes next', async () => {
  const carol = '15557773003'
  await alice.send(carol, 'to the phone', 'L1')
  await alice.status('L1', 3)
  const linked = await paired(whatsapp, carol)
  await alice.send(carol, 'to both', 'L2')
  await until('the message', () => linked.inbox().includes('to both'))
  await linked.end()
})
