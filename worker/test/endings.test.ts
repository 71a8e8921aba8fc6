/** The table of disconnections by the errors' shapes; the same rows against a real library are in disconnections.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify, type Ending, isFinal } from '../src/endings.js'

class SocksClientError extends Error {
  readonly options = { proxy: { host: 'proxy.example', password: 'a secret' } }
}

const coded = (code: string): Error => Object.assign(new Error('a certificate'), { code })
const conflict = (type: string) => ({ tag: 'conflict', attrs: { type } })

interface Row {
  readonly cause: string
  readonly code: number | null
  readonly message?: string
  readonly data?: unknown
  readonly ending: Ending['kind']
  readonly word: string
  readonly final?: boolean
}

const ROWS: readonly Row[] = [
  {
    cause: 'wrong proxy password',
    code: 500,
    data: new SocksClientError('Socks5 Authentication failed'),
    ending: 'proxy',
    word: 'auth_failed'
  },
  {
    cause: 'no auth method',
    code: 500,
    data: new SocksClientError('Received invalid Socks5 initial handshake (no accepted authentication type)'),
    ending: 'proxy',
    word: 'auth_refused'
  },
  {
    cause: 'proxy port closed',
    code: 500,
    data: new SocksClientError('connect ECONNREFUSED 127.0.0.1:1'),
    ending: 'proxy',
    word: 'refused'
  },
  {
    cause: 'proxy name unknown',
    code: 500,
    data: new SocksClientError('getaddrinfo ENOTFOUND no-such-proxy.invalid'),
    ending: 'proxy',
    word: 'unknown_host'
  },
  {
    cause: 'closed at accept',
    code: 500,
    data: new SocksClientError('Socket closed'),
    ending: 'proxy',
    word: 'closed'
  },
  {
    cause: 'not SOCKS',
    code: 500,
    data: new SocksClientError('Received invalid Socks5 initial handshake (invalid socks version)'),
    ending: 'proxy',
    word: 'not_socks'
  },
  {
    cause: 'SOCKS reply 5',
    code: 500,
    data: new SocksClientError('Socks5 proxy rejected connection - ConnectionRefused'),
    ending: 'proxy',
    word: 'connect_refused'
  },
  {
    cause: 'proxy or its CONNECT hangs',
    code: 408,
    data: new SocksClientError('Proxy connection timed out'),
    ending: 'proxy',
    word: 'timeout'
  },
  {
    cause: 'TLS not trusted',
    code: 500,
    data: coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
    ending: 'proxy',
    word: 'tls_not_trusted'
  },
  {
    cause: 'TLS for another name',
    code: 500,
    data: coded('ERR_TLS_CERT_ALTNAME_INVALID'),
    ending: 'proxy',
    word: 'tls_not_trusted'
  },
  {
    cause: 'dropped in mid-session',
    code: 428,
    message: 'Connection Terminated',
    ending: 'network',
    word: 'connection_closed_428'
  },
  { cause: 'link frozen', code: 408, message: 'Connection was lost', ending: 'network', word: 'connection_lost' },
  { cause: 'QR codes used up', code: 408, message: 'QR refs attempts ended', ending: 'qr_expired', word: 'qr_expired' },
  ...[408, 428, 500, 503].map(
    (code): Row => ({
      cause: `stream:error ${code}`,
      code,
      message: 'Stream Errored (unknown)',
      data: { tag: 'stream:error', attrs: { code: String(code) } },
      ending: 'network',
      word: `stream_error_${code}`
    })
  ),
  {
    cause: '515',
    code: 515,
    message: 'Stream Errored (restart required)',
    ending: 'restart',
    word: 'restart_required'
  },
  {
    cause: 'replaced by another socket',
    code: 440,
    message: 'Stream Errored (conflict)',
    data: conflict('replaced'),
    ending: 'replaced',
    word: 'replaced',
    final: true
  },
  {
    cause: 'device removed',
    code: 401,
    message: 'Stream Errored (conflict)',
    data: conflict('device_removed'),
    ending: 'logged_out',
    word: 'logged_out',
    final: true
  },
  {
    cause: '<failure 401>',
    code: 401,
    message: 'Connection Failure',
    data: { reason: '401' },
    ending: 'logged_out',
    word: 'logged_out',
    final: true
  },
  {
    cause: '<failure 403>',
    code: 403,
    message: 'Connection Failure',
    data: { reason: '403' },
    ending: 'refused',
    word: 'status_403',
    final: true
  },
  {
    cause: '<failure 405>',
    code: 405,
    message: 'Connection Failure',
    data: { reason: '405' },
    ending: 'refused',
    word: 'client_outdated',
    final: true
  },
  {
    cause: '<failure 503>',
    code: 503,
    message: 'Connection Failure',
    data: { reason: '503' },
    ending: 'network',
    word: 'failure_503'
  },
  {
    cause: 'HTTP error on the upgrade',
    code: null,
    message: 'HTTP 429 on the upgrade',
    ending: 'network',
    word: 'http_429'
  },
  { cause: 'nothing known', code: null, message: '', ending: 'network', word: 'connection_closed' }
]

for (const { cause, code, message = 'WebSocket Error ()', data, ending, word, final = false } of ROWS) {
  test(`${cause} is ${ending} (${word})${final ? ', and final' : ''}`, () => {
    const found = classify({ code, message, data })
    assert.equal(found.kind, ending)
    assert.equal('reason' in found ? found.reason : found.code, word)
    assert.equal(isFinal(found), final)
    assert.match(word, /^[a-z0-9][a-z0-9_.:-]{0,63}$/)
  })
}

test('what is told of a proxy names neither it nor its credentials', () => {
  const found = classify({
    code: 500,
    message: 'x',
    data: new SocksClientError('connect ECONNREFUSED 192.0.2.7:1080 user:pw')
  })
  assert.equal(found.kind, 'proxy')
  assert.doesNotMatch(JSON.stringify(found), /192\.0\.2\.7|proxy\.example|secret|pw/)
})
