/** Time for tests: a clock that moves when it is told to, and waiting for a condition instead of for a while. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../src/clock.js'

const PATIENCE_MS = 5_000

export async function until(condition: () => boolean, what: string): Promise<void> {
  const limit = Date.now() + PATIENCE_MS
  while (!condition()) {
    if (Date.now() > limit) throw new Error(`this never came true: ${what}`)
    await sleep(1)
  }
}

/** Longer ones are time limits rather than pauses between two tries. */
const LONGEST_SKIP_MS = 5_000

interface Pause {
  readonly ms: number
  readonly until: number
  readonly end: () => void
}

/** Begins at the real time, since signatures are checked against that. */
export class TestClock implements Clock {
  #now = Date.now()
  #pauses: Pause[] = []
  /** Every pause that was ever begun, in ms. */
  readonly asked: number[] = []

  now(): number {
    return this.#now
  }

  pause(ms: number, signal?: AbortSignal): Promise<void> {
    this.asked.push(ms)
    if (signal?.aborted || ms <= 0) return Promise.resolve()
    return new Promise(resolve => {
      const end = () => {
        this.#pauses = this.#pauses.filter(other => other !== pause)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const pause = { ms, until: this.#now + ms, end }
      this.#pauses.push(pause)
      signal?.addEventListener('abort', end)
    })
  }

  get pauses(): number {
    return this.#pauses.length
  }

  advance(ms: number): void {
    this.#now += ms
    for (const pause of this.#pauses.filter(({ until }) => until <= this.#now)) pause.end()
  }

  /** Once somebody pauses between two tries: on to the end of the shortest such pause. */
  async skip(): Promise<void> {
    await until(() => this.#skippable.length > 0, 'somebody pauses')
    this.#skipShortest()
  }

  /** Pause after pause, until something came true. */
  async skipUntil(condition: () => boolean, what: string): Promise<void> {
    await until(() => {
      if (condition()) return true
      if (this.#skippable.length) this.#skipShortest()
      return false
    }, what)
  }

  get #skippable(): Pause[] {
    return this.#pauses.filter(({ ms }) => ms <= LONGEST_SKIP_MS)
  }

  #skipShortest(): void {
    this.advance(Math.max(0, Math.min(...this.#skippable.map(pause => pause.until)) - this.#now))
  }
}
