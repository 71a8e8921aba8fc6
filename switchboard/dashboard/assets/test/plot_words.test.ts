import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Plot } from '../src/plot_data.js'
import { plotWords } from '../src/plot_words.js'

const plot: Plot = { kind: 'lines', x: [], xKind: 'time', series: [] }
const ZONE = 'Asia/Jerusalem'
const NOON = Date.UTC(2026, 0, 5, 10, 0) / 1_000 // in Jerusalem
const HOUR = 3_600

test('times are those of the zone, midnight shows the day that begins', () => {
  const words = plotWords(plot, 'en', ZONE)
  assert.equal(words.mark(NOON, HOUR), '12:00')
  assert.equal(words.mark(NOON + 12 * HOUR, HOUR), 'Jan 6')
  assert.equal(words.mark(NOON, 24 * HOUR), 'Jan 5')
  assert.equal(words.mark(NOON + 5, 5), '12:00:05')
  assert.equal(plotWords(plot, 'en', 'UTC').mark(NOON, HOUR), '10:00')
})

test('days and hours are written as such', () => {
  assert.equal(plotWords({ ...plot, xKind: 'day' }, 'en', ZONE).mark(NOON, 0), 'Jan 5')
  assert.equal(plotWords({ ...plot, xKind: 'day' }, 'he', ZONE).mark(NOON, 0), '5 בינו׳')
  assert.equal(plotWords({ ...plot, xKind: 'hour' }, 'en').mark(7, 1), '07:00')
  assert.equal(plotWords({ ...plot, xKind: 'hour' }, 'en').when(7), '07:00')
})

test('values are exact under the pointer and short at the side', () => {
  const words = plotWords({ ...plot, unit: 'ms' }, 'en')
  assert.equal(words.value(12_345), '12,345 ms')
  assert.equal(words.level(12_345), '12.3K')
  assert.equal(words.value(null), '–')
  assert.equal(words.when(null), '–')
  assert.equal(plotWords({ ...plot, unit: '%' }, 'en').level(50), '50%')
})
