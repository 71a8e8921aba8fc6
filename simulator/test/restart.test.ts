import assert from 'node:assert/strict'
import { appendFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { startWhatsApp } from '../src/server.js'
import { Store } from '../src/state.js'
import type { WhatsApp } from '../src/types.js'
import { type Client, paired, until } from './client.js'

const ALICE = '15557775001'
const BOB = '4915112345681'

let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'simulator-'))
})

afterEach(() => {
  rmSync(dir, { recursive: true, force: true })
})

async function restarted(whatsapp: WhatsApp, client: Client): Promise<WhatsApp> {
  await whatsapp.close()
  await client.closed()
  const again = await startWhatsApp({ dataDir: dir })
  client.moveTo(again)
  return again
}

test('accounts, sessions, messages and waiting stanzas survive a restart of the simulator', async () => {
  let whatsapp = await startWhatsApp({ dataDir: dir })
  const alice = await paired(whatsapp, ALICE, 'Alice')
  await whatsapp.sendFrom(BOB, ALICE, 'first')
  await alice.texts(1)
  await alice.send(BOB, 'before', 'R1')
  await alice.status('R1', 3)
  whatsapp.setAbsent(['15550009999'], true)
  await alice.end()
  await until('being offline', () => !whatsapp.accounts()[0]?.online)
  await whatsapp.sendFrom(BOB, ALICE, 'waiting')

  whatsapp = await restarted(whatsapp, alice)
  assert.equal(whatsapp.accounts()[0]?.name, 'Alice')
  assert.equal(whatsapp.accounts()[0]?.waiting, 1)
  assert.deepEqual(
    whatsapp.shown({ from: ALICE }).map(({ id, text, delivered }) => ({ id, text, delivered })),
    [{ id: 'R1', text: 'before', delivered: true }]
  )
  await alice.reconnect()
  assert.deepEqual(await alice.texts(2), ['first', 'waiting'])
  await alice.send(BOB, 'before', 'R1')
  await alice.send(BOB, 'after', 'R2')
  await alice.status('R2', 3)
  assert.deepEqual(
    whatsapp.shown({ from: ALICE }).map(({ id, stanzas }) => ({ id, stanzas })),
    [
      { id: 'R1', stanzas: 2 },
      { id: 'R2', stanzas: 1 }
    ]
  )
  assert.deepEqual(await alice.socket.onWhatsApp('15550009999'), [])
  await alice.end()
  await whatsapp.close()
})

test('a session of a phone goes on after a restart with the very next key', async () => {
  let whatsapp = await startWhatsApp({ dataDir: dir })
  const alice = await paired(whatsapp, ALICE)
  await whatsapp.sendFrom(BOB, ALICE, 'first')
  await alice.texts(1)
  whatsapp = await restarted(whatsapp, alice)
  await whatsapp.sendFrom(BOB, ALICE, 'second')
  await alice.reconnect()
  assert.deepEqual(await alice.texts(2), ['first', 'second'])
  assert.equal(whatsapp.requests()['receipt:retry:retry'], undefined)
  await alice.end()
  await whatsapp.close()
})

test('receipts that were due when the simulator stopped come after it is back', async () => {
  let whatsapp = await startWhatsApp({ dataDir: dir })
  const alice = await paired(whatsapp, ALICE)
  whatsapp.behave({ deliveredAfterMs: 60_000 })
  await alice.send(BOB, 'due', 'D1')
  await alice.ack('D1')
  whatsapp.behave({ deliveredAfterMs: 0 })
  whatsapp = await restarted(whatsapp, alice)
  await alice.reconnect()
  await alice.status('D1', 3)
  await alice.end()
  await whatsapp.close()
})

test('what was acknowledged is in the log already, whatever happens to the simulator next', async () => {
  const whatsapp = await startWhatsApp({ dataDir: dir })
  const alice = await paired(whatsapp, ALICE)
  await alice.send(BOB, 'acknowledged', 'K1')
  await alice.ack('K1')
  const copy = mkdtempSync(join(tmpdir(), 'simulator-'))
  cpSync(dir, copy, { recursive: true })
  const survivor = await startWhatsApp({ dataDir: copy })
  assert.deepEqual(
    survivor.shown().map(({ id }) => id),
    ['K1']
  )
  await survivor.close()
  rmSync(copy, { recursive: true, force: true })
  await alice.end()
  await whatsapp.close()
})

test('half a line at the end of the log, as a kill leaves it, is forgotten', () => {
  const store = new Store(dir)
  store.table<number>('numbers').set('one', 1)
  store.flush()
  appendFileSync(join(dir, 'state.log'), '["numbers","two",')
  const again = new Store(dir)
  const numbers = again.table<number>('numbers')
  assert.deepEqual([...numbers.entries()], [['one', 1]])
  numbers.set('three', 3)
  numbers.delete('one')
  again.flush()
  assert.deepEqual([...new Store(dir).table<number>('numbers').entries()], [['three', 3]])
  again.close()
  assert.deepEqual([...new Store(dir).table<number>('numbers').entries()], [['three', 3]])
})
