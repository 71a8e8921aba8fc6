/** Who is on WhatsApp, and under which address. Answers are remembered for a while, so that nobody is looked up twice. */
import type { Phone } from './types.js'

const LIMIT = 5_000
const PRESENT_MS = 24 * 3_600_000
/** Short: a person who tries again expects that somebody looks again. */
const ABSENT_MS = 60_000

/** The address to write to, null if there is none, undefined if WhatsApp did not answer. */
export type LookUp = (phone: Phone) => Promise<string | null | undefined>

export class Directory {
  readonly #known = new Map<Phone, { readonly address: string | null; readonly until: number }>()
  readonly #clock: () => number

  constructor(clock: () => number = Date.now) {
    this.#clock = clock
  }

  async find(phone: Phone, lookUp: LookUp): Promise<string | null | undefined> {
    const known = this.#known.get(phone)
    if (known !== undefined && known.until > this.#clock()) return known.address
    const address = await lookUp(phone)
    if (address !== undefined) this.#remember(phone, address)
    return address
  }

  #remember(phone: Phone, address: string | null): void {
    this.#known.delete(phone)
    this.#known.set(phone, { address, until: this.#clock() + (address === null ? ABSENT_MS : PRESENT_MS) })
    if (this.#known.size <= LIMIT) return
    const [oldest] = this.#known.keys()
    if (oldest !== undefined) this.#known.delete(oldest)
  }
}
