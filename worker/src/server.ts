/**
 * Signed calls to the Switchboard server, one attempt each; whoever calls decides about repeating. Goes out directly,
 * never by the session's proxy: the server is on our own network.
 *
 *     ServerError      every answer that is not 200, or none
 *     ├── Unavailable  no connection, no answer in time, 5xx, 401: repeat after a pause
 *     ├── Removed      the session is no more: stop
 *     ├── Forgotten    the message is no more: drop the report
 *     └── Rejected     a bug on our side: log and drop
 */

import { randomBytes } from 'node:crypto'
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { Webhook } from 'standardwebhooks'
import { type Clock, systemClock } from './clock.js'
import type { Settings } from './settings.js'

/** `code` is a short word for the log. */
export class ServerError extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.name = new.target.name
    this.code = code
  }
}

export class Unavailable extends ServerError {
  /** How long the server asked us to stay away; 0 if it did not. */
  readonly retryAfterMs: number

  constructor(code: string, retryAfterMs = 0) {
    super(code)
    this.retryAfterMs = retryAfterMs
  }
}

export class Removed extends ServerError {}
export class Forgotten extends ServerError {}
export class Rejected extends ServerError {}

export interface CallOptions {
  /** For the whole exchange. */
  readonly timeoutMs: number
  /** Hangs up; the call then fails as Unavailable. */
  readonly signal?: AbortSignal
}

/** Events that happened and PINGs go here; all other paths have the session's id in them. */
export const EVENTS = '/api/webhook'

const LARGEST_ANSWER = 1024 * 1024
const LONGEST_STAY_AWAY_MS = 60_000
// Below the 5 s after which the server closes an idle connection: a call must not meet one that is being closed.
const IDLE_MS = 4_000

interface Answer {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
}

export class Server {
  /** Random for each process. It tells a repeated claim from a new process. */
  readonly instance: string
  readonly #sessionId: string
  readonly #base: string
  readonly #webhook: Webhook
  readonly #clock: Clock
  readonly #agent: Agent | SecureAgent
  readonly #request: typeof request
  #calls = 0

  constructor(
    settings: Pick<Settings, 'sessionId' | 'webhookUrl' | 'webhookSecret'>,
    { instance = randomBytes(8).toString('hex'), clock = systemClock }: { instance?: string; clock?: Clock } = {}
  ) {
    this.instance = instance
    this.#sessionId = settings.sessionId
    this.#base = settings.webhookUrl.replace(/(\/api)?\/webhook$/, '')
    this.#webhook = new Webhook(settings.webhookSecret)
    this.#clock = clock
    const secure = this.#base.startsWith('https:')
    this.#agent = new (secure ? SecureAgent : Agent)({ keepAlive: true, timeout: IDLE_MS })
    this.#request = secure ? secureRequest : request
  }

  /** One of the session's own calls: claim, ack or nack. */
  outbox(call: 'claim' | 'ack' | 'nack'): string {
    return `/api/worker/sessions/${this.#sessionId}/outbox/${call}`
  }

  /** What the server answered with 200; anything else is thrown as one of the errors above. */
  async call(path: string, body: Readonly<Record<string, unknown>>, options: CallOptions): Promise<unknown> {
    const raw = JSON.stringify({ sessionId: this.#sessionId, ...body })
    return read(await this.#post(path, raw, options))
  }

  /** Idle connections would keep the process alive. */
  close(): void {
    this.#agent.destroy()
  }

  /** Signed anew each time: the server refuses an id that it has seen. */
  #headers(raw: string): Record<string, string | number> {
    this.#calls += 1
    const id = `msg_${this.instance}_${this.#calls}`
    const now = this.#clock.now()
    return {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(raw),
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now / 1000)),
      'webhook-signature': this.#webhook.sign(id, new Date(now), raw)
    }
  }

  #post(path: string, raw: string, { timeoutMs, signal }: CallOptions): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(new Unavailable('hung_up'))
      const options: RequestOptions = { method: 'POST', agent: this.#agent, headers: this.#headers(raw) }
      const call = this.#request(this.#base + path, options)
      const fail = (why: Unavailable) => call.destroy(why)
      const hangUp = () => fail(new Unavailable('hung_up'))
      const timer = setTimeout(() => fail(new Unavailable('timeout')), timeoutMs)
      signal?.addEventListener('abort', hangUp)
      call.on('error', error => reject(error instanceof Unavailable ? error : new Unavailable(connectionFault(error))))
      call.on('close', () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', hangUp)
        reject(new Unavailable('no_answer')) // changes nothing after an answer
      })
      call.on('response', response => collect(response, fail, resolve))
      call.end(raw)
    })
  }
}

function collect(response: IncomingMessage, fail: (why: Unavailable) => void, done: (answer: Answer) => void): void {
  const chunks: Buffer[] = []
  let size = 0
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > LARGEST_ANSWER) return fail(new Unavailable('answer_too_large'))
    chunks.push(chunk)
  })
  response.on('error', () => fail(new Unavailable('answer_cut_off')))
  response.on('end', () => {
    const text = Buffer.concat(chunks).toString()
    done({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], text })
  })
}

function read({ status, retryAfter, text }: Answer): unknown {
  const body = parsed(text)
  if (status === 200) {
    if (body === undefined) throw new Unavailable('answer_not_json')
    return body
  }
  throw refusal(status, errorOf(body), retryAfter)
}

/**
 * A 400, 403 or 404 counts only with a code of the protocol: something in between that is set up wrongly must not make
 * us drop reports, let alone stop. A 413 counts from anyone, since the same bytes would meet it again.
 */
function refusal(status: number, code: string | null, retryAfter: string | undefined): ServerError {
  const known = code?.toLowerCase() ?? `status_${status}`
  if (status === 404 && code === 'SESSION_NOT_FOUND') return new Removed(known)
  if (status === 404 && code === 'MESSAGE_NOT_FOUND') return new Forgotten(known)
  if (status === 413 || (status === 400 && code === 'INVALID_REQUEST') || (status === 403 && code === 'FORBIDDEN'))
    return new Rejected(known)
  return new Unavailable(known, stayAwayMs(retryAfter))
}

function errorOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null || !('error' in body)) return null
  return typeof body.error === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(body.error) ? body.error : null
}

function stayAwayMs(retryAfter: string | undefined): number {
  return /^[0-9]{1,9}$/.test(retryAfter ?? '') ? Math.min(Number(retryAfter) * 1000, LONGEST_STAY_AWAY_MS) : 0
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function connectionFault(error: Error): string {
  const code: unknown = 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code.toLowerCase() : 'no_connection'
}
