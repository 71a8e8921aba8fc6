/** Time as the worker's parts see it: passed in, so that tests need not wait. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  pause(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  pause: (ms, signal) =>
    new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      signal?.addEventListener('abort', end)
    })
}

/** Resolves when any of them aborts. Leaves no listener behind: one of them may live as long as the process. */
export function firstAbort(...signals: AbortSignal[]): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      for (const signal of signals) signal.removeEventListener('abort', end)
      resolve()
    }
    if (signals.some(signal => signal.aborted)) return resolve()
    for (const signal of signals) signal.addEventListener('abort', end)
  })
}

/** Waits for the promise, or until the signal aborts. */
export async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const done = new AbortController()
  try {
    await Promise.race([promise, firstAbort(signal, done.signal)])
  } finally {
    done.abort()
  }
}
