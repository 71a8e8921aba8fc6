/**
 * A real HTTP server in the place of Switchboard: checks every signature, refuses what it saw before, and holds every
 * body, asked or answered, against the protocol's schemas. What it hands out and how it answers is up to the test.
 */

import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { Protocol, type SchemaName } from './protocol.js'

export type Call = 'claim' | 'ack' | 'nack' | 'event'

export interface Told {
  readonly call: Call
  readonly body: Record<string, unknown>
  readonly headers: IncomingMessage['headers']
  readonly raw: string
}

export interface Reply {
  readonly status: number
  readonly body: unknown
  readonly headers?: Record<string, string>
}

/** `cut`: it was understood, and the answer is lost. `hang`: there is never an answer. Undefined: as usual. */
export type Way = (told: Told) => Reply | 'cut' | 'hang' | undefined

const HANG_UP_MS = 500
const PROTOCOL = new Protocol() // compiled once for all tests of a file
const ANSWERS: Record<Call, SchemaName | null> = {
  claim: 'claim.response',
  ack: 'settle.response',
  nack: 'settle.response',
  event: null
}
const REQUESTS: Record<Call, SchemaName> = {
  claim: 'claim.request',
  ack: 'ack.request',
  nack: 'nack.request',
  event: 'event'
}

/** A claim is held until there is something to offer. */
const USUAL: Partial<Record<Call, Reply>> = {
  ack: { status: 200, body: { settled: true, status: 'sent' } },
  nack: { status: 200, body: { settled: true, status: 'failed' } },
  event: { status: 200, body: { accepted: true } }
}

export class Switchboard {
  readonly protocol = PROTOCOL
  readonly sessionId = 'worker_1'
  readonly webhookSecret = this.protocol.signatureExample().secret
  /** Every request with a good signature, those that were then refused included. */
  readonly told: Told[] = []
  /** Whatever broke the protocol, on either side. */
  readonly faults: string[] = []
  /** How the test wants calls answered. */
  way: Way = () => undefined
  connections = 0
  hungUp = 0
  readonly #seen = new Set<string>()
  readonly #sockets = new Set<Socket>()
  readonly #offers: Record<string, unknown>[] = []
  #poll: ServerResponse | null = null
  /** Where it listens. */
  readonly address: string
  #http: HttpServer | null = null
  #port = 0

  private constructor(address: string) {
    this.address = address
  }

  static async start(address = '127.0.0.1'): Promise<Switchboard> {
    const switchboard = new Switchboard(address)
    await switchboard.back()
    return switchboard
  }

  get webhookUrl(): string {
    return `http://${this.address}:${this.#port}/api/webhook`
  }

  of(...calls: Call[]): Told[] {
    return this.told.filter(({ call }) => calls.includes(call))
  }

  /** Nobody listens any more, and every connection is cut. */
  async away(): Promise<void> {
    const http = this.#http
    this.#http = null
    this.#poll = null
    for (const socket of this.#sockets) socket.destroy()
    await new Promise(resolve => (http ? http.close(resolve) : resolve(undefined)))
  }

  async back(): Promise<void> {
    const http = createServer((request, response) => this.#take(request, response))
    http.on('connection', socket => {
      this.connections += 1
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    await new Promise<void>(resolve => http.listen(this.#port, this.address, resolve))
    this.#port = (http.address() as AddressInfo).port
    this.#http = http
  }

  /** The answer to the claim that waits, or to the next one. */
  offer(answer: Record<string, unknown>): void {
    this.#offers.push(answer)
    this.#serve()
  }

  get isPolled(): boolean {
    return this.#poll !== null
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => this.#answer(request, response, Buffer.concat(chunks).toString()))
  }

  #answer(request: IncomingMessage, response: ServerResponse, raw: string): void {
    const refused = this.#unsigned(request, raw)
    const call = callOf(request, this.sessionId)
    if (refused) {
      this.#reply(response, { status: 401, body: { error: 'UNAUTHORIZED', message: refused } })
    } else if (call) {
      this.#hear({ call, body: JSON.parse(raw), headers: request.headers, raw }, response)
    } else {
      this.#refuse(response, `no such call: ${request.method} ${request.url}`)
    }
  }

  #hear(told: Told, response: ServerResponse): void {
    this.told.push(told)
    const { call, body } = told
    const [fault] = this.protocol.faults(REQUESTS[call], body)
    if (fault || body['sessionId'] !== this.sessionId) {
      this.#refuse(response, fault ?? 'it speaks for another session')
      return
    }
    const way = this.way(told) ?? USUAL[call]
    if (way === 'cut') response.socket?.destroy()
    else if (way === undefined) this.#hold(response)
    else if (way !== 'hang') this.#reply(response, way, call)
  }

  #unsigned(request: IncomingMessage, raw: string): string | null {
    const headers = request.headers as Record<string, string>
    try {
      new Webhook(this.webhookSecret).verify(raw, headers)
    } catch {
      return 'The signature does not match.'
    }
    const id = String(headers['webhook-id'])
    if (this.#seen.has(id) || id.length > 128) return 'This very request was made before.'
    this.#seen.add(id)
    return null
  }

  #hold(response: ServerResponse): void {
    if (this.#poll) this.#expectHangUp(this.#poll)
    this.#poll = response
    response.on('close', () => {
      if (this.#poll !== response) return
      this.#poll = null
      this.hungUp += 1
    })
    this.#serve()
  }

  /** A caller that gave up waiting hangs up and asks again; here the new call may be heard before the end of the old one. */
  #expectHangUp(old: ServerResponse): void {
    const look = (): void => {
      if (!old.closed) this.faults.push('two claims at once')
    }
    setTimeout(look, HANG_UP_MS).unref()
  }

  #serve(): void {
    const poll = this.#poll
    const answer = poll && this.#offers.shift()
    if (!poll || !answer) return
    this.#poll = null
    this.#reply(poll, { status: 200, body: answer }, 'claim')
  }

  #refuse(response: ServerResponse, fault: string): void {
    this.faults.push(fault)
    this.#reply(response, { status: 400, body: { error: 'INVALID_REQUEST', message: fault } })
  }

  #reply(response: ServerResponse, { status, body, headers = {} }: Reply, call?: Call): void {
    const schema = status === 200 ? call && ANSWERS[call] : 'error'
    if (schema && typeof body !== 'string') this.faults.push(...this.protocol.faults(schema, body))
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

function callOf(request: IncomingMessage, sessionId: string): Call | null {
  if (request.method !== 'POST') return null
  if (request.url === '/api/webhook') return 'event'
  const [, call] =
    new RegExp(`^/api/worker/sessions/${sessionId}/outbox/(claim|ack|nack)$`).exec(request.url ?? '') ?? []
  return (call as Call | undefined) ?? null
}
