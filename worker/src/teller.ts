/**
 * Tells the server what the journal holds: one report after the other, in order, and again until it is answered.
 * What happens, and what is to be told of it, is decided elsewhere.
 */

import type { Clock } from './clock.js'
import type { Journal, JournalEntry } from './journal.js'
import type { Log } from './log.js'
import { Patience } from './patience.js'
import { EVENTS, Forgotten, Rejected, type Server, Unavailable } from './server.js'
import type { Report } from './types.js'

const CALL_MS = 15_000

export class Teller {
  readonly #server: Server
  readonly #journal: Journal
  readonly #clock: Clock
  readonly #log: Log
  readonly #patience: Patience
  readonly #draining = new AbortController()
  readonly #over = new AbortController()
  readonly #waiting = new Map<string, (() => void)[]>()
  readonly #leftAcks = new Set<string>()
  readonly #caughtUp: Promise<void>
  #nowCaughtUp: () => void = () => undefined
  #leftovers: number
  #running: Promise<void> | null = null

  constructor(server: Server, journal: Journal, { clock, log }: { clock: Clock; log: Log }) {
    this.#server = server
    this.#journal = journal
    this.#clock = clock
    this.#log = log
    this.#patience = new Patience('report', { clock, log })
    this.#leftovers = journal.length
    this.#caughtUp = new Promise(resolve => {
      this.#nowCaughtUp = resolve
    })
    if (this.#leftovers === 0) this.#nowCaughtUp()
  }

  /** Ends after `drain`; rejects with Removed when the server knows the session no more. */
  run(): Promise<void> {
    this.#running ??= this.#loop()
    return this.#running
  }

  /** All that an earlier process left in the journal was answered. */
  caughtUp(): Promise<void> {
    return this.#caughtUp
  }

  /** An earlier process saw WhatsApp take this message, and did not live to tell. Complete once caught up. */
  leftAckOf(messageId: string): boolean {
    return this.#leftAcks.has(messageId)
  }

  /** The report of this attempt was answered. To be called in the same breath as `journal.add`. */
  settled(messageId: string, attempt: number): Promise<void> {
    return new Promise(resolve => {
      const key = attemptKey(messageId, attempt)
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), resolve])
    })
  }

  /** Tell what is left, until `deadline` (ms) at most. How many stay in the journal, for the next process to tell. */
  async drain(deadline: number): Promise<number> {
    const ended = this.run().catch(() => undefined) // whoever called `run` has the error
    this.#draining.abort()
    const timely = new AbortController()
    await Promise.race([ended, this.#clock.pause(Math.max(0, deadline - this.#clock.now()), timely.signal)])
    timely.abort()
    this.#over.abort()
    await ended
    return this.#journal.length
  }

  async #loop(): Promise<void> {
    try {
      while (!this.#over.signal.aborted) {
        const entry = this.#journal.next()
        if (entry) await this.#tell(entry)
        else if (this.#draining.signal.aborted) return
        else await this.#news()
      }
    } finally {
      // Nobody waits for an answer that will not come; what was not told stays in the journal.
      for (const key of [...this.#waiting.keys()]) this.#release(key)
      this.#nowCaughtUp()
    }
  }

  async #news(): Promise<void> {
    const { signal } = this.#draining
    try {
      await this.#journal.news(signal)
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async #tell(entry: JournalEntry): Promise<void> {
    while (!this.#over.signal.aborted) {
      try {
        await this.#call(entry)
        this.#patience.rewarded()
        return this.#done(entry)
      } catch (error) {
        if (error instanceof Unavailable) {
          await this.#patience.after(error, this.#over.signal)
        } else if (error instanceof Rejected || error instanceof Forgotten) {
          this.#log.error('report_dropped', { code: error.code, ...naming(entry) })
          return this.#done(entry)
        } else {
          throw error
        }
      }
    }
  }

  #call({ report, sequence }: JournalEntry): Promise<unknown> {
    const options = { timeoutMs: CALL_MS, signal: this.#over.signal }
    if (report.kind !== 'event') return this.#server.call(this.#server.outbox(report.kind), report.body, options)
    const { type, timestamp, data } = report
    const number = sequence === null ? {} : { stream: this.#journal.stream, sequence }
    return this.#server.call(EVENTS, { type, timestamp, ...number, data }, options)
  }

  #done(entry: JournalEntry): void {
    this.#journal.told(entry)
    const { report } = entry
    if (this.#leftovers > 0) this.#countLeftover(report)
    if (report.kind !== 'event') {
      const { messageId, attempt } = report.body
      this.#release(attemptKey(messageId, attempt))
    }
  }

  #countLeftover(report: Report): void {
    if (report.kind === 'ack') {
      const { messageId } = report.body
      this.#leftAcks.add(String(messageId))
    }
    this.#leftovers -= 1
    if (this.#leftovers === 0) this.#nowCaughtUp()
  }

  #release(key: string): void {
    for (const resolve of this.#waiting.get(key) ?? []) resolve()
    this.#waiting.delete(key)
  }
}

function attemptKey(messageId: unknown, attempt: unknown): string {
  return `${messageId} ${attempt}`
}

function naming({ report, sequence }: JournalEntry): { call: string; type?: string; sequence?: number } {
  return {
    call: report.kind,
    ...(report.kind === 'event' ? { type: report.type } : {}),
    ...(sequence === null ? {} : { sequence })
  }
}
