/** Time as the modules see it: passed in, so that tests need not wait. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls once after `ms`. The answer takes it back. */
  after(ms: number, call: () => void): () => void
}

export const browserClock: Clock = {
  now: () => Date.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms)
    return () => clearTimeout(timer)
  }
}
