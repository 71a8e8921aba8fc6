import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backlog, KEPT_ROWS, matches } from '../src/log_rows.js'

test('a row matches when it has every word, in any order and case', () => {
  assert.equal(matches('12:00 Session worker_1 connected', 'CONNECTED worker'), true)
  assert.equal(matches('12:00 Session worker_1 connected', 'connected worker_2'), false)
  assert.equal(matches('anything', ''), true)
})

test('what came during a pause is counted, and comes in its order', () => {
  const backlog = new Backlog<number>()
  for (const row of [1, 2, 3]) backlog.add(row)
  assert.equal(backlog.count, 3)
  assert.deepEqual(backlog.take(), [1, 2, 3])
  assert.equal(backlog.count, 0)
  assert.deepEqual(backlog.take(), [])
})

test('of a long pause the newest thousand are kept, all are counted', () => {
  const backlog = new Backlog<number>()
  for (let row = 1; row <= 10_000; row++) backlog.add(row)
  assert.equal(backlog.count, 10_000)
  const rows = backlog.take()
  assert.equal(rows.length, KEPT_ROWS)
  assert.deepEqual([rows[0], rows.at(-1)], [9_001, 10_000])
})
