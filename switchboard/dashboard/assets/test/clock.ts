/** A clock that stands still until it is told to go on. */

import type { Clock } from '../src/clock.js'

export class HandClock implements Clock {
  #now = 0
  #calls: { at: number; call: () => void }[] = []

  now(): number {
    return this.#now
  }

  after(ms: number, call: () => void): () => void {
    const entry = { at: this.#now + ms, call }
    this.#calls.push(entry)
    return () => {
      this.#calls = this.#calls.filter(each => each !== entry)
    }
  }

  pass(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const next = this.#calls.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (!next) break
      this.#calls = this.#calls.filter(each => each !== next)
      this.#now = next.at
      next.call()
    }
    this.#now = end
  }
}
