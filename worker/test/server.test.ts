import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { afterEach, beforeEach, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { Clock } from '../src/clock.js'
import { EVENTS, Forgotten, Rejected, Removed, Server, type ServerError, Unavailable } from '../src/server.js'
import { type Reply, Switchboard } from './support/switchboard.js'
import { until } from './support/time.js'

const PING = { type: 'PING', timestamp: 1_763_200_000_000, data: { socketOpen: false, lastInboundAt: null } }

let switchboard: Switchboard
let server: Server

beforeEach(async () => {
  switchboard = await Switchboard.start()
  server = new Server(switchboard)
})

afterEach(async () => {
  server.close()
  await switchboard.away()
  assert.deepEqual(switchboard.faults, [])
})

function ping(options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<unknown> {
  return server.call(EVENTS, PING, { timeoutMs: 5_000, ...options })
}

async function failureOf(call: Promise<unknown>): Promise<ServerError> {
  const [result] = await Promise.allSettled([call])
  assert.equal(result.status, 'rejected')
  return result.reason
}

async function answeredWith(reply: Reply): Promise<ServerError> {
  switchboard.way = () => reply
  return failureOf(ping())
}

test('a call is signed, speaks for the session, and gives back what was answered', async () => {
  assert.deepEqual(await ping(), { accepted: true })
  assert.deepEqual(switchboard.told[0]?.body, { sessionId: 'worker_1', ...PING })
})

test('the signature is the one of the protocol’s example', async () => {
  const example = switchboard.protocol.signatureExample()
  const clock: Clock = { now: () => example.timestamp * 1000 + 999, pause: () => Promise.resolve() }
  const heard: string[] = []
  const listener = createServer(socket => {
    socket.on('data', chunk => {
      heard.push(chunk.toString())
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')
    })
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  assert.ok(address && typeof address === 'object')
  const webhookUrl = `http://127.0.0.1:${address.port}/api/webhook`
  const signer = new Server({ sessionId: 'worker_1', webhookUrl, webhookSecret: example.secret }, { clock })
  await signer.call(EVENTS, JSON.parse(example.body), { timeoutMs: 5_000 })
  signer.close()
  listener.close()

  const request = heard.join('')
  const header = (name: string) => new RegExp(`^${name}: (.*)\r$`, 'm').exec(request)?.[1] ?? ''
  assert.equal(request.split('\r\n\r\n')[1], example.body)
  assert.equal(header('webhook-timestamp'), String(example.timestamp))
  const own = new Webhook(example.secret)
  const at = new Date(example.timestamp * 1000)
  assert.equal(own.sign(example.id, at, example.body), example.signature)
  assert.equal(own.sign(header('webhook-id'), at, example.body), header('webhook-signature'))
})

test('every request has an id of its own, and connections are used again', async () => {
  for (let call = 0; call < 5; call += 1) await ping()
  assert.equal(new Set(switchboard.told.map(({ headers }) => headers['webhook-id'])).size, 5)
  assert.equal(switchboard.connections, 1)
})

test('the very same request again is refused', async () => {
  await ping()
  const [first] = switchboard.told
  assert.ok(first)
  const { host: _, connection: __, ...headers } = first.headers
  const response = await fetch(switchboard.webhookUrl, {
    method: 'POST',
    headers: headers as Record<string, string>,
    body: first.raw
  })
  assert.equal(response.status, 401)
  await response.body?.cancel()
})

test('a wrong secret is a reason to try again later', async () => {
  const webhookSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const stranger = new Server({ ...switchboard, webhookUrl: switchboard.webhookUrl, webhookSecret })
  const error = await failureOf(stranger.call(EVENTS, PING, { timeoutMs: 5_000 }))
  stranger.close()
  assert.ok(error instanceof Unavailable)
  assert.equal(error.code, 'unauthorized')
})

test('each error of the protocol’s examples is told apart', async () => {
  const kinds: [string, number, typeof ServerError][] = [
    ['unauthorized', 401, Unavailable],
    ['forbidden', 403, Rejected],
    ['invalid-request', 400, Rejected],
    ['payload-too-large', 413, Rejected],
    ['session-not-found', 404, Removed],
    ['store-unavailable', 503, Unavailable]
  ]
  assert.deepEqual(
    kinds.map(([name]) => name).sort(),
    switchboard.protocol
      .examples('error')
      .map(e => e.case)
      .sort()
  )
  for (const [name, status, kind] of kinds) {
    const error = await answeredWith({ status, body: switchboard.protocol.example('error', name) })
    assert.ok(error instanceof kind, `${name} became ${error.name}`)
    assert.equal(error.code, name.replaceAll('-', '_'))
  }
  const forgotten = { error: 'MESSAGE_NOT_FOUND', message: 'There is no such message.' }
  assert.ok((await answeredWith({ status: 404, body: forgotten })) instanceof Forgotten)
})

test('how long the server wants to be left alone is known, within reason', async () => {
  const body = switchboard.protocol.example('error', 'store-unavailable')
  const asked = async (header: string) => {
    const error = await answeredWith({ status: 503, body, headers: { 'retry-after': header } })
    assert.ok(error instanceof Unavailable)
    return error.retryAfterMs
  }
  assert.equal(await asked('7'), 7_000)
  assert.equal(await asked('86400'), 60_000)
  assert.equal(await asked('Wed, 21 Oct 2026 07:28:00 GMT'), 0)
})

test('an answer of something in between neither stops the worker nor loses a report', async () => {
  for (const status of [301, 400, 403, 404, 500, 502]) {
    const error = await answeredWith({ status, body: '<html>not found</html>' })
    assert.ok(error instanceof Unavailable, `${status} became ${error.name}`)
    assert.equal(error.code, `status_${status}`)
  }
  assert.ok((await answeredWith({ status: 200, body: '<html>welcome</html>' })) instanceof Unavailable)
  assert.ok((await answeredWith({ status: 413, body: '<html>too large</html>' })) instanceof Rejected)
})

test('no connection, no answer and a lost answer are all the same: not available', async () => {
  switchboard.way = () => 'hang'
  assert.equal((await failureOf(ping({ timeoutMs: 50 }))).code, 'timeout')
  switchboard.way = () => 'cut'
  assert.equal((await failureOf(ping())).code, 'econnreset')
  await switchboard.away()
  const error = await failureOf(ping())
  assert.ok(error instanceof Unavailable)
  assert.equal(error.code, 'econnrefused')
})

test('an answer without end is not read to its end', async () => {
  const error = await answeredWith({ status: 200, body: 'x'.repeat(1024 * 1024 + 1) })
  assert.ok(error instanceof Unavailable)
  assert.equal(error.code, 'answer_too_large')
})

test('a call can be hung up, before and while it waits', async () => {
  const hangUp = new AbortController()
  const waiting = server.call(
    server.outbox('claim'),
    { instance: server.instance, waitMs: 25_000 },
    {
      timeoutMs: 35_000,
      signal: hangUp.signal
    }
  )
  await until(() => switchboard.isPolled, 'the claim waits')
  hangUp.abort()
  assert.equal((await failureOf(waiting)).code, 'hung_up')
  await until(() => switchboard.hungUp === 1, 'the server sees it')
  assert.equal((await failureOf(ping({ signal: hangUp.signal }))).code, 'hung_up')
  assert.equal(switchboard.of('event').length, 0)
})

test('no error repeats the secret or the body', async () => {
  for (const way of ['cut', { status: 400, body: { error: 'INVALID_REQUEST', message: 'hunter2' } }] as const) {
    switchboard.way = () => way
    const error = await failureOf(ping())
    assert.doesNotMatch(`${error.message} ${error.stack}`, /whsec_|hunter2|lastInboundAt/)
  }
})
