import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { type Moment, Pace } from '../src/pace.js'
import { HandClock } from './clock.js'

let clock: HandClock
let moments: Record<string, Moment>
let runs: [string, number][]
let pace: Pace<string>

beforeEach(() => {
  clock = new HandClock()
  moments = {}
  runs = []
  pace = new Pace<string>(
    clock,
    1_000,
    key => moments[key] ?? 'now',
    key => runs.push([key, clock.now()])
  )
})

test('the first change is fetched at once', () => {
  pace.want('a')
  assert.deepEqual(runs, [['a', 0]])
})

test('a storm of changes is fetched once a second, and the last one is not lost', () => {
  for (let at = 0; at < 2_500; at += 100) {
    pace.want('a')
    clock.pass(100)
  }
  clock.pass(5_000)
  assert.deepEqual(
    runs.map(([, at]) => at),
    [0, 1_000, 2_000, 3_000]
  )
})

test('nothing is fetched without a change', () => {
  pace.want('a')
  clock.pass(10_000)
  pace.look()
  assert.equal(runs.length, 1)
})

test('each has a pace of its own', () => {
  pace.want('a')
  pace.want('b')
  assert.deepEqual(runs, [
    ['a', 0],
    ['b', 0]
  ])
})

test('what changes at a bad moment is fetched once when the moment has passed', () => {
  moments['a'] = 'later'
  for (let times = 0; times < 5; times++) pace.want('a')
  clock.pass(60_000)
  assert.deepEqual(runs, [])
  moments['a'] = 'now'
  pace.look()
  pace.look()
  clock.pass(60_000)
  assert.deepEqual(runs, [['a', 60_000]])
})

test('a moment that turns bad while waiting for the second to pass is respected', () => {
  pace.want('a')
  pace.want('a')
  moments['a'] = 'later'
  clock.pass(5_000)
  assert.equal(runs.length, 1)
  moments['a'] = 'now'
  pace.look()
  assert.deepEqual(runs.at(-1), ['a', 5_000])
})

test('what is gone from the page is forgotten', () => {
  moments['a'] = 'never'
  pace.want('a')
  moments['a'] = 'now'
  pace.look()
  clock.pass(5_000)
  assert.deepEqual(runs, [])
})
