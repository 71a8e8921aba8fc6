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

/** The answer to one message: an error's code, or undefined for a plain ack. */
export interface Answer {
  readonly error: string | undefined
}

export class Acks {
  readonly #waiting = new Map<string, (answer: Answer | null) => void>()

  /** Registered before sending: the ack can come before the send itself resolves. Null: none came. */
  expect(id: string): Promise<Answer | null> {
    return new Promise(resolve => this.#waiting.set(id, resolve))
  }

  came(id: string, error: string | undefined): void {
    this.#settle(id, { error })
  }

  /** Nothing will come any more for this one. */
  giveUp(id: string): void {
    this.#settle(id, null)
  }

  /** The connection is gone, and all answers with it. */
  giveUpAll(): void {
    for (const id of [...this.#waiting.keys()]) this.giveUp(id)
  }

  #settle(id: string, answer: Answer | null): void {
    this.#waiting.get(id)?.(answer)
    this.#waiting.delete(id)
  }
}
