import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listensTo, outermost, topicsIn } from '../src/topics.js'

test('an element hears each of its topics, and no other that only begins alike', () => {
  const changed = topicsIn('{"topics": ["session:worker_1", "sessions"]}')
  assert.equal(listensTo('sessions', changed), true)
  assert.equal(listensTo('proxies  session:worker_1', changed), true)
  assert.equal(listensTo('session:worker_10', changed), false)
  assert.equal(listensTo('session', changed), false)
  assert.equal(listensTo('', changed), false)
  assert.equal(listensTo(undefined, changed), false)
})

for (const data of ['', 'nonsense', 'null', '{}', '{"topics": "sessions"}', '{"topics": [1, null]}']) {
  test(`${data || 'nothing'} names no topic`, () => {
    assert.equal(topicsIn(data).size, 0)
  })
}

test('an element within another one comes along with it', () => {
  const box = (...inner: unknown[]) => ({ contains: (other: unknown) => inner.includes(other) })
  const [inner, alone] = [box(), box()]
  const outer = box(inner)
  assert.deepEqual(outermost([inner, outer, alone]), [outer, alone])
})
