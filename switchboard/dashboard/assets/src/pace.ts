/** When what has changed may be fetched anew: seldom enough, not at a bad moment, and never not at all. */

import type { Clock } from './clock.js'

export type Moment = 'now' | 'later' | 'never'

export class Pace<Key> {
  readonly #clock: Clock
  readonly #gapMs: number
  readonly #moment: (key: Key) => Moment
  readonly #run: (key: Key) => void
  readonly #wanted = new Set<Key>()
  readonly #timers = new Set<Key>()
  readonly #last = new Map<Key, number>()

  /** `moment` says whether a key is ready; what must come later is asked again at `look`. */
  constructor(clock: Clock, gapMs: number, moment: (key: Key) => Moment, run: (key: Key) => void) {
    this.#clock = clock
    this.#gapMs = gapMs
    this.#moment = moment
    this.#run = run
  }

  want(key: Key): void {
    this.#wanted.add(key)
    this.#try(key)
  }

  /** A bad moment may have passed. */
  look(): void {
    for (const key of [...this.#wanted]) this.#try(key)
  }

  #try(key: Key): void {
    if (!this.#wanted.has(key)) return
    const moment = this.#moment(key)
    if (moment === 'never') this.#forget(key)
    if (moment !== 'now' || this.#timers.has(key)) return
    const rest = (this.#last.get(key) ?? Number.NEGATIVE_INFINITY) + this.#gapMs - this.#clock.now()
    if (rest > 0) this.#tryAfter(key, rest)
    else {
      this.#wanted.delete(key)
      this.#last.set(key, this.#clock.now())
      this.#run(key)
    }
  }

  #tryAfter(key: Key, ms: number): void {
    this.#timers.add(key)
    this.#clock.after(ms, () => {
      this.#timers.delete(key)
      this.#try(key)
    })
  }

  #forget(key: Key): void {
    this.#wanted.delete(key)
    this.#last.delete(key)
  }
}
