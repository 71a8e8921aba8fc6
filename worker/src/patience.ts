/** How a loop bears with a server that is away: growing pauses, and one line in the log for each change. */

import type { Clock } from './clock.js'
import type { Log } from './log.js'
import type { Unavailable } from './server.js'

const SHORTEST_MS = 100
const LONGEST_MS = 5_000

export class Patience {
  readonly #clock: Clock
  readonly #log: Log
  readonly #call: string
  #next = SHORTEST_MS
  #trouble: string | null = null

  /** `call` is what the log names. */
  constructor(call: string, { clock, log }: { clock: Clock; log: Log }) {
    this.#call = call
    this.#clock = clock
    this.#log = log
  }

  /** Noted, without a pause: for what is not repeated. */
  note(error: Unavailable): void {
    if (error.code === this.#trouble) return
    this.#trouble = error.code
    this.#log.warn('server_unavailable', { call: this.#call, code: error.code })
  }

  /** As long as the server asked for, if that is longer than it would have been. */
  async after(error: Unavailable, signal: AbortSignal): Promise<void> {
    this.note(error)
    await this.pause(signal, error.retryAfterMs)
  }

  /** Twice as long as the last one. A fifth is left to chance: a server that comes back must not meet all at once. */
  async pause(signal: AbortSignal, atLeastMs = 0): Promise<void> {
    const ms = Math.round(this.#next * (1 - Math.random() / 5))
    this.#next = Math.min(this.#next * 2, LONGEST_MS)
    await this.#clock.pause(Math.max(ms, atLeastMs), signal)
  }

  /** The server answered. */
  rewarded(): void {
    if (this.#trouble !== null) this.#log.info('server_back', { call: this.#call })
    this.#trouble = null
    this.#next = SHORTEST_MS
  }
}
