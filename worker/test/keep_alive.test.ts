import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { KeepAlive } from '../src/keep_alive.js'
import { Log } from '../src/log.js'
import { Removed, Server } from '../src/server.js'
import { TestLink } from './support/link.js'
import { Switchboard } from './support/switchboard.js'
import { TestClock, until } from './support/time.js'

let switchboard: Switchboard
let server: Server
let link: TestLink
let clock: TestClock
let stop: AbortController
let events: string[]
let running: Promise<void>

beforeEach(async () => {
  switchboard = await Switchboard.start()
  server = new Server(switchboard)
  link = new TestLink()
  clock = new TestClock()
  stop = new AbortController()
  events = []
  running = Promise.resolve()
})

afterEach(async () => {
  stop.abort()
  await running
  server.close()
  await switchboard.away()
  assert.deepEqual(switchboard.faults, [])
})

function start(presence = true): void {
  const log = new Log(line => events.push(JSON.parse(line).event))
  running = new KeepAlive({ server, link, clock, log, presence }).run(stop.signal)
}

const pings = () => switchboard.of('event')

async function beat(): Promise<void> {
  const before = pings().length
  await until(() => clock.pauses === 1, 'the last beat is over')
  clock.advance(30_000)
  await until(() => pings().length > before, 'the next PING')
}

test('a PING is told at once and then every 30 s, with what the link knows', async () => {
  link.isOpen = false
  start()
  await until(() => pings().length === 1, 'the first PING')
  const before = switchboard.protocol.example('event', 'ping-before-the-first-frame')
  assert.deepEqual(pings()[0]?.body, { ...before, timestamp: clock.now() })

  link.isOpen = true
  link.lastInboundAt = 1_763_199_996_000
  await beat()
  const open = switchboard.protocol.example('event', 'ping')
  assert.deepEqual(pings()[1]?.body, { ...open, timestamp: clock.now() })

  await until(() => clock.pauses === 1, 'the beat is over')
  clock.advance(29_999)
  assert.equal(clock.pauses, 1)
})

test('a PING that can’t be told is skipped, never made up for', async () => {
  start()
  await until(() => pings().length === 1, 'the first PING')
  await until(() => clock.pauses === 1, 'the beat is over')
  await switchboard.away()
  for (let missed = 1; missed <= 3; missed += 1) {
    clock.advance(30_000)
    await until(() => clock.asked.length === missed + 1, 'it was tried')
  }
  await switchboard.back()
  await beat()
  assert.equal(pings().length, 2)
  await until(() => events.at(-1) === 'server_back', 'the log says that it is back')
})

test('a PING that the server refuses is no reason to stop', async () => {
  switchboard.way = () => ({ status: 400, body: { error: 'INVALID_REQUEST', message: 'No.' } })
  start()
  await until(() => pings().length === 1, 'the first PING')
  await beat()
  assert.equal(events[0], 'ping_refused')
})

test('a session that was removed ends it', async () => {
  switchboard.way = () => ({ status: 404, body: switchboard.protocol.example('error', 'session-not-found') })
  start()
  await assert.rejects(running, Removed)
  running = Promise.resolve()
})

test('presence is shown at every beat while the link is open, and only if it is wanted', async () => {
  link.isOpen = false
  start()
  await until(() => clock.pauses === 1, 'the first beat is over')
  assert.equal(link.presences, 0)
  link.isOpen = true
  await beat()
  await beat()
  assert.equal(link.presences, 2)
})

test('without presence there are PINGs all the same', async () => {
  start(false)
  await until(() => pings().length === 1, 'the first PING')
  await beat()
  assert.equal(link.presences, 0)
})

test('a presence that hangs or fails holds up no PING', async () => {
  let fail: (error: Error) => void = () => undefined
  link.obedience = () =>
    new Promise((_, reject) => {
      fail = reject
    })
  start()
  await until(() => pings().length === 1, 'the first PING')
  await beat()
  assert.equal(link.presences, 1)
  fail(new TypeError('hunter2'))
  await beat()
  assert.equal(link.presences, 2)
  assert.deepEqual(events, ['presence_failed'])
})
