/** Messages of linked devices: taken apart, read by the phones they were encrypted for, passed on, acknowledged. */

import type { Accounts } from './accounts.js'
import { type Addressing, addressingOf, addressOf, type DeviceAddress, originOf } from './addresses.js'
import type { Chats } from './chats.js'
import { type BinaryNode, childOf, grandchildren, node, type proto } from './codec.js'
import type { Connection } from './connection.js'
import type { Delivery } from './delivery.js'
import type { Faults } from './faults.js'
import type { Phones } from './phones.js'
import type { Receipts } from './receipts.js'
import type { Phone, WireMessage } from './types.js'

const MOST_WIRE = 10_000
const TOO_FAST = 429
const RESTRICTED = 463

export interface MessageParts {
  readonly accounts: Accounts
  readonly chats: Chats
  readonly delivery: Delivery
  readonly faults: Faults
  readonly phones: Phones
  readonly receipts: Receipts
  readonly by: Addressing
  readonly clock: () => number
}

/** What is inside a stanza for one device. */
interface Envelope {
  readonly jid: string
  readonly address: DeviceAddress
  readonly enc: BinaryNode
}

interface Letter {
  readonly id: string
  readonly sender: DeviceAddress
  /** Null for groups and the like, which nobody here reads. */
  readonly to: Phone | null
  readonly chat: string
  readonly stanza: BinaryNode
  readonly envelopes: readonly Envelope[]
}

export class Messages {
  readonly #parts: MessageParts
  readonly #wire: WireMessage[] = []

  constructor(parts: MessageParts) {
    this.#parts = parts
  }

  wire(): readonly WireMessage[] {
    return this.#wire
  }

  async take(connection: Connection, stanza: BinaryNode): Promise<void> {
    const sender = connection.address
    if (!sender) return
    const { faults } = this.#parts
    const letter = letterIn(stanza, sender)
    if (faults.strike('drop_message', sender.phone)) {
      this.#note(letter, null, 'none')
      connection.drop()
      return
    }
    const refusal = faults.strike('ack_error', sender.phone)
    if (refusal) {
      const code = refusal.code ?? TOO_FAST
      if (code === RESTRICTED && refusal.ms !== undefined) this.#restrict(sender.phone, refusal.ms)
      this.#note(letter, null, String(code))
      connection.send(this.#ack(letter, { error: String(code) }))
      return
    }
    const text = await this.#carry(letter)
    const dropped = faults.strike('drop_before_ack', sender.phone)
    const unanswered = dropped ?? faults.strike('no_ack', sender.phone)
    this.#note(letter, text, unanswered ? 'none' : 'ack')
    if (dropped) connection.drop()
    else if (!unanswered) connection.send(this.#ack(letter, {}))
  }

  /** To every device it was encrypted for. Answers what the recipient's phone could read, if anything. */
  async #carry(letter: Letter): Promise<string | null> {
    const known = letter.to && this.#parts.chats.find(letter.sender.phone, letter.to, letter.id)
    if (known) {
      known.stanzas += 1
      this.#parts.chats.save(known)
    }
    let text: string | null = null
    for (const envelope of letter.envelopes) {
      const { phone, device } = envelope.address
      if (device !== 0) this.#passOn(letter, envelope)
      else if (phone === letter.to) text = await this.#show(letter, envelope)
      else await this.#readOnOwnPhone(letter, envelope)
    }
    return text
  }

  /** The recipient's phone reads it and shows it, once. If it cannot, it asks for it again. */
  async #show(letter: Letter, envelope: Envelope): Promise<string | null> {
    const { chats, faults, receipts, phones, clock } = this.#parts
    const { id, sender } = letter
    const { phone } = envelope.address
    if (phones.isAbsent(phone)) return null
    const known = chats.find(sender.phone, phone, id)
    const damaged = faults.strike('undecryptable', sender.phone) !== null
    const message = damaged ? null : await this.#decrypt(letter, envelope)
    if (!message) {
      // A phone that shows the message already takes a second copy for what it is and stays quiet.
      if (!known) receipts.askAgain(this.#lost(letter, envelope))
      return null
    }
    const text = textOf(message)
    if (known) {
      if (known.delivered && !known.quiet) receipts.delivered(known)
    } else if (text !== null) {
      const record = {
        id,
        from: sender.phone,
        to: phone,
        text,
        at: clock(),
        stanzas: 1 + receipts.failures({ id, sender, phone }),
        delivered: false,
        read: false,
        by: addressingOf(letter.chat),
        quiet: faults.strike('no_receipts', sender.phone) !== null
      }
      chats.show(record)
      receipts.expect(record)
    }
    return text
  }

  async #readOnOwnPhone(letter: Letter, envelope: Envelope): Promise<void> {
    if (envelope.address.phone !== letter.sender.phone) return
    if (await this.#decrypt(letter, envelope)) return
    if (letter.stanza.attrs['category'] !== 'peer') this.#parts.receipts.askAgain(this.#lost(letter, envelope))
  }

  async #decrypt(letter: Letter, { address, enc }: Envelope): Promise<proto.Message | null> {
    if (!(enc.content instanceof Uint8Array)) return null
    const phone = this.#parts.phones.of(address.phone)
    try {
      return await phone.decrypt(letter.sender, enc.attrs['type'] ?? '', Buffer.from(enc.content))
    } catch {
      // Whatever the reason, the phone knows only that it cannot read it; the retry receipt is the report.
      return null
    }
  }

  /** To another linked device, still encrypted. */
  #passOn(letter: Letter, envelope: Envelope): void {
    const { accounts, delivery, by } = this.#parts
    const { sender, stanza } = letter
    const { phone, device } = envelope.address
    const isSender = phone === sender.phone && device === sender.device
    if (isSender || !accounts.companion(envelope.address)?.linked) return
    const ownCopyTo = phone === sender.phone && letter.to !== null ? letter.to : undefined
    const attrs = {
      ...originOf(sender, by, ownCopyTo),
      id: letter.id,
      t: this.#seconds(),
      type: stanza.attrs['type'] ?? 'text',
      notify: accounts.find(sender.phone)?.name ?? ''
    }
    const identity = childOf(stanza, 'device-identity')
    delivery.post(envelope.address, node('message', attrs, identity ? [envelope.enc, identity] : [envelope.enc]))
  }

  #lost({ id, sender, chat }: Letter, { address, jid }: Envelope) {
    return { id, sender, phone: address.phone, by: addressingOf(address.phone === sender.phone ? jid : chat), chat }
  }

  #restrict(phone: Phone, ms: number): void {
    const account = this.#parts.accounts.need(phone)
    account.timelockUntil = this.#parts.clock() + ms
    this.#parts.accounts.save(account)
  }

  #note(letter: Letter, text: string | null, answer: string): void {
    const { id, sender, to, chat } = letter
    const devices = letter.envelopes.map(({ jid }) => jid)
    this.#wire.push({ id, from: sender.phone, to: to ?? chat, at: this.#parts.clock(), devices, text, answer })
    if (this.#wire.length > MOST_WIRE) this.#wire.shift()
  }

  #ack(letter: Letter, extra: Record<string, string>): BinaryNode {
    return node('ack', { class: 'message', id: letter.id, from: letter.chat, t: this.#seconds(), ...extra })
  }

  #seconds(): string {
    return String(Math.floor(this.#parts.clock() / 1000))
  }
}

/** To everybody's devices in `<participants>`, or to the one device that is addressed. */
function letterIn(stanza: BinaryNode, sender: DeviceAddress): Letter {
  const chat = stanza.attrs['to'] ?? ''
  const parts = grandchildren(stanza, 'participants', 'to').map(to => ({ jid: to.attrs['jid'] ?? '', holder: to }))
  if (parts.length === 0) parts.push({ jid: chat, holder: stanza })
  const envelopes = parts.flatMap(({ jid, holder }) => {
    const address = addressOf(jid)
    const enc = childOf(holder, 'enc')
    return address && enc ? [{ jid, address, enc }] : []
  })
  const to = addressOf(stanza.attrs['recipient'] ?? chat)?.phone ?? null
  return { id: stanza.attrs['id'] ?? '', sender, to, chat, stanza, envelopes }
}

/** What a phone shows of a message: its text or caption; null for what is not shown as a message. */
function textOf(message: proto.IMessage): string | null {
  const inner = message.deviceSentMessage?.message ?? message
  const media = inner.imageMessage ?? inner.videoMessage ?? inner.documentMessage
  if (media) return media.caption ?? ''
  if (inner.audioMessage || inner.stickerMessage) return ''
  return inner.conversation || (inner.extendedTextMessage?.text ?? null)
}
