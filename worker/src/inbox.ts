/**
 * Messages that people wrote to the account, from the moment they are decrypted until they are in the journal.
 *
 * Decrypting uses up a key, so it can be done once; and WhatsApp is told "received" before the library shows the message
 * to anyone. So each message is written in the same atomic step as the used key, and handed to the journal before
 * WhatsApp hears of it. A crash in between finds it here at the next start; a message that comes again is known.
 */
import type { AuthStore } from './auth_store.js'
import type { Journal } from './journal.js'
import type { Letter } from './stanzas.js'
import { userOf } from './stanzas.js'
import type { Phone } from './types.js'

const TYPE = 'inbox'
const LIMIT = 1_000
const PHONE = /^[1-9]\d{6,14}$/

interface Kept extends Letter {
  readonly text: string
}

/** A number for a LID, if one is known. */
export type PhoneFor = (address: string) => Promise<Phone | null>

export class Inbox {
  readonly #store: AuthStore
  readonly #journal: Journal
  readonly #broken: (error: unknown) => void
  readonly #clock: () => number

  /** `broken`: the journal takes no more; nothing may be acknowledged from now on. */
  constructor(store: AuthStore, journal: Journal, broken: (error: unknown) => void, clock: () => number = Date.now) {
    this.#store = store
    this.#journal = journal
    this.#broken = broken
    this.#clock = clock
    store.keepNewest(TYPE, LIMIT)
  }

  /** It was received before, whatever WhatsApp believes. */
  knows(letter: Letter): boolean {
    return this.#journal.knows(onceKey(letter)) || nameOf(letter) in this.#store.get(TYPE, [nameOf(letter)])
  }

  /** The change to be written together with the used key. */
  entry(letter: Letter, text: string): Record<string, Record<string, unknown>> {
    return { [TYPE]: { [nameOf(letter)]: { ...letter, text } } }
  }

  /** One that was not decrypted by us. */
  async receive(letter: Letter, text: string, phoneFor: PhoneFor): Promise<void> {
    if (this.knows(letter)) return
    await this.#store.set(this.entry(letter, text))
    await this.deliver(phoneFor)
  }

  /** Into the journal with all whose sender's number is known. The others wait for it here. */
  async deliver(phoneFor: PhoneFor): Promise<void> {
    for (const name of this.#store.list(TYPE)) {
      const letter = this.#store.get(TYPE, [name])[name] as Kept | undefined
      if (letter === undefined) continue
      const phone = letter.phone ?? (await phoneFor(letter.from))
      if (phone === null) continue
      if (PHONE.test(phone)) this.#tell(letter, phone) // WhatsApp itself writes from numbers that are none
      await this.#journal.sync()
      await this.#store.set({ [TYPE]: { [name]: null } })
    }
  }

  #tell(letter: Kept, phone: Phone): void {
    const { id: whatsappId, text, timestamp, backfilled } = letter
    const data = { from: phone, whatsappId, text, timestamp, ...(backfilled ? { backfilled } : {}) }
    const report = { kind: 'event', type: 'MESSAGE_RECEIVED', timestamp: this.#clock(), data } as const
    try {
      this.#journal.add(report, onceKey(letter))
    } catch (error) {
      this.#broken(error)
    }
  }
}

const nameOf = (letter: Letter): string => `${userOf(letter.from)}/${letter.id}`
const onceKey = (letter: Letter): string => `received/${nameOf(letter)}`
