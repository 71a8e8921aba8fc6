import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barSlots, columns, isWhole, labelled, type Plot, shapeOf, xRange, yRange } from '../src/plot_data.js'

const hours: Plot = {
  kind: 'bars',
  x: [0, 1, 2],
  xKind: 'hour',
  series: [
    { label: 'Sent', values: [3, null, 5], tone: 'sent' },
    { label: 'Failed', values: [1], tone: 'failed' }
  ]
}
const times: Plot = { ...hours, kind: 'lines', xKind: 'time', x: [1_000, 1_060, 1_300] }

test('bars stand at their place in the row, lines over time at their time', () => {
  assert.deepEqual(columns(hours)[0], [0, 1, 2])
  assert.deepEqual(columns({ ...hours, x: [100, 200, 400], xKind: 'day' })[0], [0, 1, 2])
  assert.deepEqual(columns(times)[0], [1_000, 1_060, 1_300])
})

test('what is missing in a series is a gap, not a zero', () => {
  assert.deepEqual(columns(hours).slice(1), [
    [3, null, 5],
    [1, null, null]
  ])
})

test('new figures leave the shape alone, other series do not', () => {
  const later = { ...hours, x: [1, 2, 3], series: hours.series.map(series => ({ ...series, values: [9, 9, 9] })) }
  assert.equal(shapeOf(later), shapeOf(hours))
  assert.notEqual(shapeOf({ ...hours, series: hours.series.slice(1) }), shapeOf(hours))
  assert.notEqual(shapeOf({ ...hours, kind: 'lines' }), shapeOf(hours))
})

test('half a place is left on both sides of the bars', () => {
  assert.deepEqual(xRange(hours), [-0.5, 2.5])
  assert.deepEqual(xRange(times), [1_000, 1_300])
  assert.deepEqual(xRange({ ...times, from: 0, to: 86_400 }), [0, 86_400])
})

test('a plot without figures still has a scale', () => {
  const empty = { ...times, x: [], series: [] }
  assert.deepEqual(xRange(empty), [0, 1])
  assert.deepEqual(xRange({ ...empty, kind: 'bars' }), [-0.5, 0.5])
  assert.deepEqual(yRange(empty, null), [0, 1])
})

test('the scale ends above the highest, or where it is said to', () => {
  assert.deepEqual(yRange(hours, 100), [0, 110.00000000000001])
  assert.deepEqual(yRange(hours, 0), [0, 1])
  assert.deepEqual(yRange({ ...hours, max: 20 }, 100), [0, 20])
})

test('bars of one place stand side by side around its middle, without touching the next place', () => {
  const [first, second] = [barSlots(2, 2, 0, 1), barSlots(2, 2, 1, 1)]
  assert.equal(first.width, 0.2)
  assert.deepEqual(first.left.map(round), [0.05, 0.55])
  assert.deepEqual(second.left.map(round), [0.25, 0.75])
})

test('a lone bar is not as wide as the plot', () => {
  const { left, width } = barSlots(1, 1, 0, 0.1)
  assert.equal(width, 0.1)
  assert.deepEqual(left.map(round), [0.45])
})

test('labels get thinner where room is short', () => {
  assert.deepEqual(labelled(4, 10), [0, 1, 2, 3])
  assert.deepEqual(labelled(24, 8), [0, 3, 6, 9, 12, 15, 18, 21])
  assert.deepEqual(labelled(1_000, 4), [0, 250, 500, 750])
  assert.deepEqual(labelled(3, 0), [0])
  assert.deepEqual(labelled(0, 5), [])
})

test('counts are whole, shares are not', () => {
  assert.equal(isWhole(hours), true)
  assert.equal(isWhole({ ...hours, series: [{ label: '', values: [0.5], tone: 'read' }] }), false)
})

function round(number: number): number {
  return Math.round(number * 1e6) / 1e6
}
