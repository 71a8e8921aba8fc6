import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseAfter, urlAfter } from '../src/stream.js'

test('pauses grow to half a minute and not beyond', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 50].map(tries => pauseAfter(tries, 0)),
    [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
  )
})

test('a fifth of a pause is left to chance', () => {
  assert.equal(pauseAfter(0, 1), 800)
})

test('a new stream goes on after the last event of the old one', () => {
  assert.equal(urlAfter('/log/stream?level=warn', '', 'http://here/log'), '/log/stream?level=warn')
  assert.equal(
    urlAfter('/log/stream?level=warn', '7-0', 'http://here/log'),
    'http://here/log/stream?level=warn&after=7-0'
  )
})
