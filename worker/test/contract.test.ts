/** That this side reads and writes what `protocol/` says. The server's tests read the same files. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { readClaim } from '../src/claims.js'
import { Unavailable } from '../src/server.js'
import type { EventType } from '../src/types.js'
import { Desk } from './support/desk.js'
import { Protocol, type SchemaName } from './support/protocol.js'
import { until } from './support/time.js'

const protocol = new Protocol()
const SCHEMAS: SchemaName[] = [
  'ack.request',
  'claim.request',
  'claim.response',
  'error',
  'event',
  'nack.request',
  'settle.response'
]

let desk: Desk

beforeEach(async () => {
  desk = await Desk.open()
})

afterEach(() => desk.close())

test('the schemas take every example, and no invalid one', () => {
  for (const schema of SCHEMAS) {
    const examples = protocol.examples(schema)
    assert.ok(examples.length > 0, schema)
    for (const example of examples) assert.deepEqual(protocol.faults(schema, example.document), [], example.case)
    for (const { case: name, wrong, document } of protocol.invalidExamples(schema)) {
      assert.notDeepEqual(protocol.faults(schema, document), [], `${name} was taken, though ${wrong}`)
    }
  }
})

test('every answer to a claim is understood as it is meant', () => {
  for (const { case: name, document } of protocol.examples('claim.response')) {
    const { message, order = null } = document
    assert.deepEqual(readClaim(document), { message, order }, name)
  }
})

test('no answer that the protocol forbids is acted upon', () => {
  for (const { case: name, document } of protocol.invalidExamples('claim.response')) {
    assert.throws(() => readClaim(document), Unavailable, name)
  }
})

test('every event of the examples is told as it is written, but for the numbers', async () => {
  const own = protocol.examples('event').filter(({ document }) => document['type'] !== 'PING')
  for (const { document } of own) {
    const { type, timestamp, data } = document
    desk.journal.add({
      kind: 'event',
      type: type as EventType,
      timestamp: Number(timestamp),
      data: data as Record<string, unknown>
    })
  }
  desk.teller()
  await until(() => desk.journal.length === 0, 'all is told')
  const { stream } = desk.journal
  for (const [index, { document }] of own.entries()) {
    assert.deepEqual(desk.switchboard.told[index]?.body, { ...document, stream, sequence: index + 1 })
  }
})

test('every ack and nack of the examples is told as it is written, and every answer to one is enough', async () => {
  const answers = protocol.examples('settle.response').map(({ document }) => document)
  const examples = [...protocol.examples('ack.request'), ...protocol.examples('nack.request')]
  for (const { schema, document } of examples) {
    const { sessionId: _, ...body } = document
    desk.journal.add({ kind: schema === 'ack.request' ? 'ack' : 'nack', body })
  }
  let turn = 0
  desk.switchboard.way = () => ({ status: 200, body: answers[turn++ % answers.length] })
  desk.teller()
  await until(() => desk.journal.length === 0, 'all is told')
  assert.ok(turn >= answers.length)
  assert.deepEqual(
    desk.switchboard.told.map(({ body }) => body),
    examples.map(({ document }) => document)
  )
  assert.deepEqual(desk.lines, [])
})
