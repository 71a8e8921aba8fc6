/** Wakes those who wait for something to happen. Carries nothing: whoever is woken looks for himself. */
export class Doorbell {
  readonly #waiting = new Set<{ wake: () => void; fail: (error: unknown) => void }>()
  #removed: Error | null = null

  ring(): void {
    for (const waiter of this.#waiting) waiter.wake()
  }

  /** From now on, waiting fails. */
  remove(error: Error): void {
    this.#removed = error
    for (const waiter of this.#waiting) waiter.fail(error)
  }

  /** Resolves at the next ring. Rejects with the signal's reason. */
  async heard(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.#removed) throw this.#removed
    let give: (() => void) | undefined
    try {
      await new Promise<void>((wake, fail) => {
        const waiter = { wake, fail }
        this.#waiting.add(waiter)
        const abort = () => fail(signal?.reason)
        signal?.addEventListener('abort', abort)
        give = () => {
          this.#waiting.delete(waiter)
          signal?.removeEventListener('abort', abort)
        }
      })
    } finally {
      // A signal may outlive thousands of waits.
      give?.()
    }
  }
}
