import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { Removed } from '../src/server.js'
import { Desk, statusChange } from './support/desk.js'
import type { Told } from './support/switchboard.js'
import { until } from './support/time.js'

const T = 1_763_200_000_000
const ACK = { messageId: '9f2c4b7a1d3e5f6081', attempt: 1, timestamp: T }

let desk: Desk

beforeEach(async () => {
  desk = await Desk.open()
})

afterEach(() => desk.close())

const isTold = () => desk.journal.length === 0
const sequences = (told: Told[]) => told.map(({ body }) => body['sequence'])

test('reports are told in the order they were added, events with their numbers', async () => {
  desk.journal.add(statusChange(T))
  desk.journal.add({ kind: 'ack', body: ACK })
  desk.journal.add(statusChange(T + 1))
  desk.teller()
  await until(isTold, 'all is told')
  const { told } = desk.switchboard
  assert.deepEqual(
    told.map(({ call }) => call),
    ['event', 'ack', 'event']
  )
  assert.deepEqual(told[0]?.body, {
    sessionId: 'worker_1',
    type: 'STATUS_CHANGE',
    timestamp: T,
    stream: desk.journal.stream,
    sequence: 1,
    data: { status: 'connected' }
  })
  assert.deepEqual(told[1]?.body, { sessionId: 'worker_1', ...ACK })
  assert.equal(told[2]?.body['sequence'], 2)
})

test('what is added while it runs is told at once', async () => {
  desk.teller()
  for (let count = 1; count <= 3; count += 1) {
    desk.journal.add(statusChange(T + count))
    await until(() => desk.switchboard.told.length === count && isTold(), 'it is told')
  }
  assert.deepEqual(desk.clock.asked, [])
})

test('while the server is away nothing is lost, and once it is back all is told in order, once', async () => {
  desk.journal.add(statusChange(T))
  desk.teller()
  await until(isTold, 'the first is told')
  await desk.switchboard.away()
  for (let count = 1; count < 20; count += 1) desk.journal.add(statusChange(T + count))
  for (let pause = 0; pause < 9; pause += 1) await desk.clock.skip()
  assert.equal(desk.journal.length, 19)
  await desk.switchboard.back()
  await desk.clock.skipUntil(isTold, 'all is told')
  assert.deepEqual(
    sequences(desk.switchboard.told),
    Array.from({ length: 20 }, (_, index) => index + 1)
  )
  assert.equal(desk.events.at(-1), 'server_back')
})

test('the pauses grow from 100 ms to 5 s, and begin anew after an answer', async () => {
  desk.switchboard.way = () => ({ status: 500, body: { error: 'BROKEN', message: 'Something broke.' } })
  desk.journal.add(statusChange(T))
  desk.teller()
  for (let pause = 0; pause < 9; pause += 1) await desk.clock.skip()
  const full = [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]
  for (const [index, longest] of full.entries()) {
    const asked = desk.clock.asked[index] ?? 0
    assert.ok(asked <= longest && asked >= longest * 0.8, `pause ${index} was ${asked} ms`)
  }
  desk.switchboard.way = told => (told.body['sequence'] === 2 ? 'cut' : undefined)
  desk.journal.add(statusChange(T))
  await desk.clock.skipUntil(() => desk.journal.length === 1, 'the first is told')
  await until(() => desk.clock.asked.slice(9).some(ms => ms <= 100), 'a short pause again')
})

test('a report whose answer was lost is told again, signed anew', async () => {
  let cut = 2
  desk.switchboard.way = () => (cut-- > 0 ? 'cut' : undefined)
  desk.journal.add({ kind: 'nack', body: { ...ACK, class: 'retryable', error: 'connection_closed', until: null } })
  desk.teller()
  await desk.clock.skipUntil(isTold, 'it is told')
  const { told } = desk.switchboard
  assert.equal(told.length, 3)
  assert.equal(new Set(told.map(({ raw }) => raw)).size, 1)
  assert.equal(new Set(told.map(({ headers }) => headers['webhook-id'])).size, 3)
})

test('the server is left alone for as long as it asks', async () => {
  const body = desk.switchboard.protocol.example('error', 'store-unavailable')
  desk.switchboard.way = () => ({ status: 503, body, headers: { 'retry-after': '7' } })
  desk.journal.add(statusChange(T))
  desk.teller()
  await until(() => desk.clock.pauses === 1, 'it pauses')
  assert.deepEqual(desk.clock.asked, [7_000])
  desk.switchboard.way = () => undefined
  desk.clock.advance(6_999)
  assert.equal(desk.clock.pauses, 1)
  desk.clock.advance(1)
  await until(isTold, 'it is told')
})

test('a report that is not accepted for its signature waits for the clock or the secret to be put right', async () => {
  const body = desk.switchboard.protocol.example('error', 'unauthorized')
  let refusals = 3
  desk.switchboard.way = () => (refusals-- > 0 ? { status: 401, body } : undefined)
  desk.journal.add(statusChange(T))
  desk.teller()
  await desk.clock.skipUntil(isTold, 'it is told')
  assert.equal(desk.switchboard.told.length, 4)
  assert.deepEqual(desk.lines[0]?.['code'], 'unauthorized')
})

test('what the server refuses for good is dropped with a line in the log, and the next is told', async () => {
  const refusals = [
    { status: 400, body: desk.switchboard.protocol.example('error', 'invalid-request') },
    { status: 403, body: desk.switchboard.protocol.example('error', 'forbidden') },
    { status: 413, body: desk.switchboard.protocol.example('error', 'payload-too-large') },
    { status: 404, body: { error: 'MESSAGE_NOT_FOUND', message: 'There is no such message.' } }
  ]
  desk.switchboard.way = () => refusals.shift()
  for (let count = 0; count < 3; count += 1) desk.journal.add(statusChange(T))
  desk.journal.add({ kind: 'ack', body: ACK })
  desk.journal.add(statusChange(T))
  desk.teller()
  await until(isTold, 'all is answered')
  assert.equal(desk.switchboard.told.length, 5)
  assert.deepEqual(
    desk.lines.map(({ event, code }) => `${event} ${code}`),
    [
      'report_dropped invalid_request',
      'report_dropped forbidden',
      'report_dropped payload_too_large',
      'report_dropped message_not_found'
    ]
  )
})

test('a session that was removed ends it, and nobody waits for answers any more', async () => {
  desk.switchboard.way = () => ({
    status: 404,
    body: desk.switchboard.protocol.example('error', 'session-not-found')
  })
  const { teller, running } = desk.teller()
  desk.journal.add({ kind: 'ack', body: ACK })
  const settled = teller.settled(ACK.messageId, 1)
  await assert.rejects(running, Removed)
  await settled
  assert.equal(await teller.drain(desk.clock.now() + 1_000), 1)
})

test('an attempt is settled when its own report was answered, not before', async () => {
  const { teller } = desk.teller()
  await desk.switchboard.away()
  const order: string[] = []
  for (const attempt of [1, 2]) {
    desk.journal.add({ kind: 'ack', body: { ...ACK, attempt } })
    void teller.settled(ACK.messageId, attempt).then(() => order.push(`${attempt}, ${desk.journal.length} left`))
  }
  for (let pause = 0; pause < 3; pause += 1) await desk.clock.skip()
  assert.deepEqual(order, [])
  await desk.switchboard.back()
  await desk.clock.skipUntil(() => order.length === 2, 'both are settled')
  assert.deepEqual(order, ['1, 1 left', '2, 0 left'])
})

test('draining tells what is left, then ends', async () => {
  const { teller, running } = desk.teller()
  for (let count = 0; count < 5; count += 1) desk.journal.add(statusChange(T))
  assert.equal(await teller.drain(desk.clock.now() + 5_000), 0)
  await running
  assert.equal(desk.switchboard.told.length, 5)
})

test('draining ends at its deadline, and what is left is for the next process', async () => {
  desk.switchboard.way = () => 'hang'
  const { teller, running } = desk.teller()
  desk.journal.add(statusChange(T))
  await until(() => desk.switchboard.told.length === 1, 'it is being told')
  const drained = teller.drain(desk.clock.now() + 5_000)
  desk.clock.advance(5_000)
  assert.equal(await drained, 1)
  await running

  desk.switchboard.way = () => undefined
  desk.reopenJournal()
  desk.teller()
  await until(isTold, 'the next process told it')
  assert.deepEqual(sequences(desk.switchboard.told), [1, 1])
})

test('what an earlier process left is known to be told, its acks by name', async () => {
  desk.journal.add(statusChange(T))
  desk.journal.add({ kind: 'ack', body: ACK })
  desk.reopenJournal()
  await desk.switchboard.away()
  const { teller } = desk.teller()
  let caughtUp = false
  void teller.caughtUp().then(() => {
    caughtUp = true
  })
  desk.journal.add({ kind: 'ack', body: { ...ACK, messageId: '000000000000000001' } })
  await desk.clock.skip()
  assert.equal(caughtUp, false)
  await desk.switchboard.back()
  await desk.clock.skipUntil(() => caughtUp && isTold(), 'it has caught up')
  assert.equal(teller.leftAckOf(ACK.messageId), true)
  assert.equal(teller.leftAckOf('000000000000000001'), false)
})
