/**
 * Proof of life at a steady pace: a PING with what the link really knows. Told once or not at all; a PING that comes late
 * proves nothing. Also reminds the link to show its presence, if that is wanted.
 */

import type { Clock } from './clock.js'
import { type Log, whatFailed } from './log.js'
import { Patience } from './patience.js'
import { EVENTS, Forgotten, Rejected, type Server, Unavailable } from './server.js'
import type { Link } from './types.js'

const INTERVAL_MS = 30_000
const CALL_MS = 10_000

export interface KeepAliveParts {
  readonly server: Server
  readonly link: Link
  readonly clock: Clock
  readonly log: Log
  /** Whether the account is to be seen as present. PINGs are told either way: the server's watchdog needs them. */
  readonly presence: boolean
  readonly intervalMs?: number
}

export class KeepAlive {
  readonly #parts: KeepAliveParts
  readonly #patience: Patience
  #beingHere = false

  constructor(parts: KeepAliveParts) {
    this.#parts = parts
    this.#patience = new Patience('ping', parts)
  }

  /** Until `stop` aborts; rejects with Removed when the server knows the session no more. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock, intervalMs = INTERVAL_MS } = this.#parts
    while (!stop.aborted) {
      this.#beHere()
      await this.#ping(stop)
      await clock.pause(intervalMs, stop)
    }
  }

  async #ping(stop: AbortSignal): Promise<void> {
    const { server, link, clock, log } = this.#parts
    const data = { socketOpen: link.isOpen, lastInboundAt: link.lastInboundAt }
    const event = { type: 'PING', timestamp: clock.now(), data }
    try {
      await server.call(EVENTS, event, { timeoutMs: CALL_MS, signal: stop })
      this.#patience.rewarded()
    } catch (error) {
      if (error instanceof Unavailable) {
        if (!stop.aborted) this.#patience.note(error)
      } else if (error instanceof Rejected || error instanceof Forgotten) {
        log.error('ping_refused', { code: error.code })
      } else {
        throw error
      }
    }
  }

  /** Beside the PING, which must not wait for it. */
  #beHere(): void {
    const { link, log, presence } = this.#parts
    if (!presence || !link.isOpen || !link.beHere || this.#beingHere) return
    this.#beingHere = true
    link
      .beHere()
      .catch((error: unknown) => log.warn('presence_failed', whatFailed(error)))
      .finally(() => {
        this.#beingHere = false
      })
  }
}
