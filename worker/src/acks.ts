/** WhatsApp's acknowledgements: who waits for which, and what an error in one means. */
import type { Outcome } from './types.js'

export const failed = (
  kind: (Outcome & { sent: false })['class'],
  error: string,
  until: number | null = null
): Outcome => ({ sent: false, class: kind, error, until })

/** Codes that pass by themselves. Any other refusal stands: the same message would be refused again. */
const PASSING = new Set(['408', '479', '500', '503'])

/** What an ack says: nothing, or the code of an error. */
export function outcomeOf(error: string | undefined, until: number | null = null): Outcome {
  if (error === undefined) return { sent: true }
  const word = /^\d{3}$/.test(error) ? `status_${error}` : 'status_unknown'
  if (error === '429') return failed('rate_limited', word)
  if (error === '463') return failed('restricted', word, until)
  return failed(PASSING.has(error) ? 'retryable' : 'refused', word)
}

/** The answer to one message: an error's code, or undefined for a plain ack. Or why there is none. */
export type Answer = { readonly error: string | undefined } | 'late' | 'connection_lost'

export class Acks {
  readonly #waiting = new Map<string, (answer: Answer) => void>()

  /** Registered before sending: the ack can come before the send itself resolves. */
  expect(id: string): Promise<Answer> {
    return new Promise(resolve => this.#waiting.set(id, resolve))
  }

  came(id: string, error: string | undefined): void {
    this.#settle(id, { error })
  }

  /** Nobody waits for this one any longer. */
  giveUp(id: string): void {
    this.#settle(id, 'late')
  }

  connectionLost(): void {
    for (const id of [...this.#waiting.keys()]) this.#settle(id, 'connection_lost')
  }

  #settle(id: string, answer: Answer): void {
    this.#waiting.get(id)?.(answer)
    this.#waiting.delete(id)
  }
}
