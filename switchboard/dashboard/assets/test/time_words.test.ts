import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countdownWords, distance, relativeWords, timeFormat } from '../src/time_words.js'

const EN = timeFormat('en')
const HE = timeFormat('he')
const S = 1_000
const [MINUTE, HOUR, DAY] = [60 * S, 3_600 * S, 86_400 * S]

for (const [ms, count, unit] of [
  [0, 0, 'second'],
  [-59 * S, -59, 'second'],
  [-60 * S, -1, 'minute'],
  [-59 * MINUTE, -59, 'minute'],
  [2 * HOUR, 2, 'hour'],
  [-23 * HOUR, -23, 'hour'],
  [-6 * DAY, -6, 'day'],
  [8 * DAY, 1, 'week'],
  [-45 * DAY, -1, 'month'],
  [-800 * DAY, -2, 'year']
] as const) {
  test(`${ms / S} seconds are ${count} ${unit}`, () => {
    const found = distance(0, ms)
    assert.equal(found.unit, unit)
    assert.equal(found.count + 0, count)
  })
}

test('the words are those of the language', () => {
  assert.equal(relativeWords(0, -3 * MINUTE, EN), '3 minutes ago')
  assert.equal(relativeWords(0, 2 * HOUR, EN), 'in 2 hours')
  assert.equal(relativeWords(0, -DAY, EN), 'yesterday')
  assert.equal(relativeWords(0, -3 * MINUTE, HE), 'לפני 3 דקות')
  assert.equal(relativeWords(0, -MINUTE, HE), 'לפני דקה')
  assert.equal(relativeWords(0, 2 * HOUR, HE), 'בעוד שעתיים')
})

test('what happened just now happened now', () => {
  assert.equal(relativeWords(0, -4 * S, EN), 'now')
  assert.equal(relativeWords(0, -5 * S, EN), '5 seconds ago')
})

test('a countdown ends at zero', () => {
  assert.equal(countdownWords(0, 59.2 * S), '01:00')
  assert.equal(countdownWords(0, 9 * S), '00:09')
  assert.equal(countdownWords(0, HOUR + 61 * S), '01:01:01')
  assert.equal(countdownWords(10 * S, 0), '00:00')
})
