import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fields, Log, whatFailed } from '../src/log.js'

function lines(use: (log: Log) => void): Record<string, unknown>[] {
  const written: string[] = []
  use(
    new Log(
      line => written.push(line),
      () => 1_763_200_000_000
    )
  )
  for (const line of written) assert.match(line, /^[^\n]+\n$/)
  return written.map(line => JSON.parse(line))
}

test('a line is one JSON object with time, level and event', () => {
  assert.deepEqual(
    lines(log => log.warn('server_unavailable', { code: 'econnrefused', attempt: 2 })),
    [
      {
        time: '2025-11-15T09:46:40.000Z',
        level: 'warn',
        event: 'server_unavailable',
        attempt: 2,
        code: 'econnrefused'
      }
    ]
  )
})

test('a field that nobody agreed on is left out, and a sentence is withheld', () => {
  const slip = { code: 'connect to socks5h://user:hunter2@host failed', text: 'hunter2', type: 'x'.repeat(65) }
  const [line] = lines(log => log.error('slip', slip as Fields))
  assert.deepEqual(Object.keys(line ?? {}), ['time', 'level', 'event', 'code', 'type'])
  assert.equal(line?.['code'], 'withheld')
  assert.equal(line?.['type'], 'withheld')
})

test('of an error only its class and code are told, never its message', () => {
  class KeyError extends Error {
    readonly code = 'ERR_KEY'
  }
  assert.deepEqual(whatFailed(new KeyError('private key 0x1234')), { name: 'KeyError', code: 'ERR_KEY' })
  assert.deepEqual(whatFailed(new TypeError('hunter2')), { name: 'TypeError' })
  assert.deepEqual(whatFailed('hunter2'), { name: 'string' })
})
