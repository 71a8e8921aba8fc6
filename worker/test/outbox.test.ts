import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { Removed } from '../src/server.js'
import type { Outcome } from '../src/types.js'
import { Desk, statusChange } from './support/desk.js'
import { until } from './support/time.js'

let desk: Desk

beforeEach(async () => {
  desk = await Desk.open()
})

afterEach(() => desk.close())

function start(): Promise<void> {
  return desk.outbox(desk.teller().teller)
}

/** The message of the protocol's example, with a lease of a minute from now. */
function message(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const { message } = desk.switchboard.protocol.example('claim.response', 'first-attempt')
  return { ...(message as Record<string, unknown>), leaseUntil: desk.clock.now() + 60_000, ...changes }
}

const claims = () => desk.switchboard.of('claim')
const reports = () => desk.switchboard.of('ack', 'nack')
const offer = (changes: Record<string, unknown> = {}) => desk.switchboard.offer({ message: message(changes) })

function lastReport(): string {
  const report = reports().at(-1)
  return `${report?.call} ${report?.body['class']} ${report?.body['error']}`
}

/** The loop came round: this many reports, and it claims again. */
async function reported(count: number): Promise<void> {
  await until(() => reports().length === count && desk.switchboard.isPolled, `${count} reports`)
}

test('a claim waits for long, names this process, and comes from the first moment on, linked or not', async () => {
  desk.link.isOpen = false
  void start()
  await until(() => desk.switchboard.isPolled, 'the first claim')
  const example = desk.switchboard.protocol.example('claim.request', 'long-poll')
  assert.deepEqual(claims()[0]?.body, { ...example, instance: desk.server.instance })
})

test('a message is sent, acknowledged, and the next one is asked for', async () => {
  void start()
  const [first, second] = [message(), message({ messageId: '000000000000000002', attempt: 3 })]
  desk.switchboard.offer({ message: first })
  desk.switchboard.offer({ message: second })
  await reported(2)
  assert.deepEqual(
    desk.link.sent.map(({ message }) => message),
    [first, second]
  )
  assert.equal(desk.link.sent[0]?.deadline, Number(first['leaseUntil']) - 5_000)
  assert.deepEqual(reports()[0]?.body, {
    sessionId: 'worker_1',
    messageId: first['messageId'],
    attempt: 1,
    timestamp: desk.clock.now()
  })
  assert.deepEqual(
    desk.switchboard.told.map(({ call }) => call),
    ['claim', 'ack', 'claim', 'ack', 'claim']
  )
})

test('each kind of failure is reported as the protocol’s examples say', async () => {
  void start()
  const examples = desk.switchboard.protocol.examples('nack.request')
  assert.ok(examples.length >= 7)
  for (const [index, { document }] of examples.entries()) {
    const { class: kind, error, until } = document
    desk.link.outcome = async () => ({ sent: false, class: kind, error, until }) as Outcome
    offer({ messageId: document['messageId'], attempt: index + 1 })
    await reported(index + 1)
    assert.deepEqual(reports().at(-1)?.body, { ...document, attempt: index + 1, timestamp: desk.clock.now() })
  }
})

test('a failure that the protocol has no words for is reported all the same', async () => {
  void start()
  desk.link.outcome = async () => ({ sent: false, class: 'refused', error: 'Not Acceptable: hunter2', until: 5 })
  offer()
  await reported(1)
  assert.equal(lastReport(), 'nack refused unnamed')
  desk.link.outcome = () => Promise.reject(new TypeError('hunter2'))
  offer({ attempt: 2 })
  await reported(2)
  assert.equal(lastReport(), 'nack unconfirmed send_threw')
  assert.doesNotMatch(JSON.stringify(desk.lines), /hunter2/)
})

test('a restriction that ends at no moment of this century is reported without its end', async () => {
  void start()
  const soon = desk.clock.now() + 3_600_000
  const ends = [soon, 0, 5, -1, soon / 1_000, soon + 0.5, soon * 1_000, Number.NaN, Number.POSITIVE_INFINITY]
  for (const [index, until] of ends.entries()) {
    desk.link.outcome = async () => ({ sent: false, class: 'restricted', error: 'status_463', until })
    offer({ attempt: index + 1 })
    await reported(index + 1)
  }
  assert.deepEqual(
    reports().map(({ body }) => body['until']),
    ends.map(until => (until === soon ? soon : null))
  )
})

test('a message for a link that is not open waits a little for it', async () => {
  desk.link.isOpen = false
  void start()
  offer()
  for (let look = 0; look < 10; look += 1) await desk.clock.skip()
  desk.link.isOpen = true
  await desk.clock.skipUntil(() => reports().length === 1, 'the report')
  assert.equal(lastReport(), 'ack undefined undefined')
})

test('a link that stays closed for 10 s is reported', async () => {
  desk.link.isOpen = false
  void start()
  const began = desk.clock.now()
  offer()
  await desk.clock.skipUntil(() => reports().length === 1, 'the report')
  assert.equal(lastReport(), 'nack retryable not_connected')
  assert.equal(desk.clock.now() - began, 10_000)
  assert.equal(desk.link.sent.length, 0)
})

test('it waits for the link no longer than the lease allows', async () => {
  desk.link.isOpen = false
  void start()
  const began = desk.clock.now()
  offer({ leaseUntil: began + 14_000 })
  await desk.clock.skipUntil(() => reports().length === 1, 'the report')
  assert.equal(lastReport(), 'nack retryable not_connected')
  assert.equal(desk.clock.now() - began, 4_000)
})

test('nothing is sent on a lease of less than 10 s', async () => {
  void start()
  offer({ leaseUntil: desk.clock.now() + 9_999 })
  await reported(1)
  assert.equal(lastReport(), 'nack retryable lease_too_short')
  offer({ leaseUntil: desk.clock.now() + 10_000, attempt: 2 })
  await reported(2)
  assert.equal(desk.link.sent.length, 1)
})

test('a message whose handing over got lost is given again, and sent once', async () => {
  let lost = 1
  desk.switchboard.way = ({ call }) => (call === 'claim' && lost-- > 0 ? 'cut' : undefined)
  void start()
  offer()
  await desk.clock.skipUntil(() => reports().length === 1, 'the report')
  assert.equal(desk.link.sent.length, 1)
})

test('no claim is made while a report is not answered', async () => {
  let away = true
  desk.switchboard.way = ({ call }) => (call === 'ack' && away ? 'cut' : undefined)
  void start()
  offer()
  for (let pause = 0; pause < 5; pause += 1) await desk.clock.skip()
  assert.equal(claims().length, 1)
  away = false
  await desk.clock.skipUntil(() => claims().length === 2, 'the next claim')
  assert.equal(desk.link.sent.length, 1)
})

test('an attempt that was reported is not sent again, whatever became of the report', async () => {
  const refused = { status: 400, body: desk.switchboard.protocol.example('error', 'invalid-request') }
  desk.switchboard.way = ({ call }) => (call === 'ack' ? refused : undefined)
  void start()
  offer()
  await reported(1)
  offer()
  await desk.clock.skipUntil(() => claims().length === 3, 'it claims again after a pause')
  assert.equal(desk.link.sent.length, 1)
  offer({ attempt: 2 })
  await reported(2)
  assert.equal(desk.link.sent.length, 2)
})

test('a message that an earlier process saw WhatsApp take is not sent again', async () => {
  desk.journal.add(statusChange(desk.clock.now()))
  desk.journal.add({
    kind: 'ack',
    body: { messageId: message()['messageId'], attempt: 1, timestamp: desk.clock.now() }
  })
  desk.reopenJournal()
  let holdsBack = true
  desk.switchboard.way = ({ call }) => (call === 'event' && holdsBack ? 'cut' : undefined)
  void start()
  offer({ attempt: 2 })
  await until(() => claims().length === 1, 'the claim')
  for (let pause = 0; pause < 3; pause += 1) await desk.clock.skip()
  assert.equal(reports().length, 0)
  holdsBack = false
  await desk.clock.skipUntil(() => reports().length === 2, 'both reports')
  assert.deepEqual(
    reports().map(({ call, body }) => `${call} ${body['attempt']}`),
    ['ack 1', 'ack 2']
  )
  assert.equal(desk.link.sent.length, 0)
})

test('nothing is sent as long as it is not known what an earlier process left', async () => {
  desk.journal.add(statusChange(desk.clock.now()))
  desk.reopenJournal()
  desk.switchboard.way = ({ call }) => (call === 'event' ? 'cut' : undefined)
  void start()
  offer()
  await desk.clock.skipUntil(() => desk.journal.length === 2, 'the report is in the journal')
  assert.equal(desk.link.sent.length, 0)
  desk.switchboard.way = () => undefined
  await desk.clock.skipUntil(() => reports().length === 1, 'the report')
  assert.equal(lastReport(), 'nack retryable reports_waiting')
})

test('an order is carried out beside the messages and named in the next claim', async () => {
  desk.link.obedience = () => new Promise(() => undefined)
  void start()
  desk.switchboard.offer(desk.switchboard.protocol.example('claim.response', 'order-logout'))
  await until(() => claims().length === 2, 'the claim after the first order')
  assert.equal(claims()[1]?.body['order'], 1)
  desk.switchboard.offer(desk.switchboard.protocol.example('claim.response', 'order-pair'))
  await until(() => claims().length === 3, 'the claim after the second order')
  const example = desk.switchboard.protocol.example('claim.request', 'order-taken-on')
  assert.deepEqual(claims()[2]?.body, { ...example, instance: desk.server.instance })
  assert.deepEqual(desk.link.orders, ['logout', 'pair 972501234567'])
  offer()
  await reported(1)
  assert.equal(desk.link.sent.length, 1)
})

test('an order that is given again is not carried out again, and one that fails stops nothing', async () => {
  desk.link.obedience = () => Promise.reject(new TypeError('hunter2'))
  void start()
  const order = desk.switchboard.protocol.example('claim.response', 'order-pair')
  desk.switchboard.offer(order)
  desk.switchboard.offer(order)
  await until(() => claims().length === 3, 'two orders were given')
  assert.deepEqual(desk.link.orders, ['pair 972501234567'])
  await until(() => desk.events.includes('order_failed'), 'the log')
  offer()
  await reported(1)
})

test('there is never more than one send under way', async () => {
  void start()
  for (let attempt = 1; attempt <= 30; attempt += 1) offer({ attempt })
  desk.link.outcome = () => new Promise(resolve => setImmediate(() => resolve({ sent: true })))
  await reported(30)
  assert.equal(desk.link.mostAtOnce, 1)
})

test('while the server is away the claims pause longer and longer', async () => {
  void start()
  await until(() => desk.switchboard.isPolled, 'the first claim')
  await desk.switchboard.away()
  for (let pause = 0; pause < 8; pause += 1) await desk.clock.skip()
  assert.ok((desk.clock.asked[0] ?? 0) <= 100)
  assert.ok((desk.clock.asked[7] ?? 0) >= 4_000)
  await desk.switchboard.back()
  offer()
  await desk.clock.skipUntil(() => reports().length === 1, 'the report')
})

test('a server that answers at once with nothing is not stormed', async () => {
  desk.switchboard.way = () => ({ status: 200, body: desk.switchboard.protocol.example('claim.response', 'nothing') })
  void start()
  for (let pause = 0; pause < 4; pause += 1) await desk.clock.skip()
  assert.ok(claims().length <= 5)
  assert.ok(desk.clock.asked.every((ms, index) => ms >= 80 * 2 ** index))
})

test('claims that the server refuses are repeated with pauses: there is nothing else to do', async () => {
  desk.switchboard.way = () => ({ status: 400, body: desk.switchboard.protocol.example('error', 'invalid-request') })
  void start()
  for (let pause = 0; pause < 3; pause += 1) await desk.clock.skip()
  assert.ok(desk.events.every(event => event === 'claim_refused'))
  desk.switchboard.way = () => undefined
  await desk.clock.skipUntil(() => desk.switchboard.isPolled, 'a claim that is taken')
})

test('a session that was removed ends it', async () => {
  desk.switchboard.way = () => ({
    status: 404,
    body: desk.switchboard.protocol.example('error', 'session-not-found')
  })
  await assert.rejects(start(), Removed)
})

test('when it is to stop, it hangs up on the claim and makes no other', async () => {
  const running = start()
  await until(() => desk.switchboard.isPolled, 'the claim')
  desk.stop.abort()
  await running
  await until(() => desk.switchboard.hungUp === 1, 'the server sees it')
  assert.equal(claims().length, 1)
})

test('a send under way is finished within the grace, and reported', async () => {
  let finish: (outcome: Outcome) => void = () => undefined
  desk.link.outcome = () =>
    new Promise(resolve => {
      finish = resolve
    })
  const { teller } = desk.teller()
  const running = desk.outbox(teller)
  offer()
  await until(() => desk.link.sent.length === 1, 'the send')
  desk.switchboard.way = ({ call }) => (call === 'ack' ? 'hang' : undefined)
  desk.stop.abort()
  finish({ sent: true })
  await running
  assert.equal(desk.journal.length, 1)
  assert.equal(claims().length, 1)
})

test('a send that outlasts the grace is left unreported: the lease decides', async () => {
  desk.link.outcome = () => new Promise(() => undefined)
  const running = start()
  offer()
  await until(() => desk.link.sent.length === 1, 'the send')
  desk.stop.abort()
  await desk.clock.skip()
  await running
  assert.equal(desk.journal.length, 0)
  assert.equal(reports().length, 0)
  assert.equal(desk.events.at(-1), 'send_left_unreported')
})

test('a message that was claimed and not begun when it is to stop is given back', async () => {
  desk.link.isOpen = false
  const running = start()
  offer()
  await desk.clock.skip()
  desk.stop.abort()
  await running
  assert.equal(desk.link.sent.length, 0)
  const { report } = desk.journal.next() ?? {}
  assert.ok(report?.kind === 'nack')
  assert.equal(report.body['error'], 'stopping')
})
