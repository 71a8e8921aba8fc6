/** Delivered, read and "send it again": the receipts of simulated phones, and those of linked devices to each other. */

import type { Accounts } from './accounts.js'
import { type Addressing, addressOf, type DeviceAddress, jidOf } from './addresses.js'
import { retryKeyNodes } from './bundles.js'
import type { Chats } from './chats.js'
import { type BinaryNode, childrenOf, encodeBigEndian, firstChild, node } from './codec.js'
import type { Delivery } from './delivery.js'
import type { Inbound } from './inbound.js'
import type { Phones } from './phones.js'
import type { Records, ShownRecord } from './records.js'
import { type Behaviour, type Phone, Refused } from './types.js'

/** A phone gives up on a message after this many failures, as real ones do. */
const MOST_RETRIES = 5
const MOST_REMEMBERED = 5000
/** Receipts that tell the sender something; the others are between a device and the server. */
const TOLD = new Set([undefined, 'inactive', 'read', 'played'])

export interface ReceiptParts {
  readonly accounts: Accounts
  readonly chats: Chats
  readonly delivery: Delivery
  readonly inbound: Inbound
  readonly phones: Phones
  readonly retries: Records['retries']
  readonly behaviour: () => Behaviour
  readonly clock: () => number
}

/** A message a phone could not read. */
export interface Unreadable {
  readonly id: string
  readonly sender: DeviceAddress
  /** The phone that failed. */
  readonly phone: Phone
  readonly by: Addressing
  /** The chat it belongs to, as the sender named it. */
  readonly chat: string
}

export class Receipts {
  readonly #parts: ReceiptParts
  readonly #timers = new Set<NodeJS.Timeout>()

  constructor(parts: ReceiptParts) {
    this.#parts = parts
  }

  /** Receipts that were still to come when the simulator stopped. */
  resume(): void {
    const readLater = this.#parts.behaviour().readAfterMs !== null
    for (const record of this.#parts.chats.all()) {
      if (!record.delivered || (readLater && !record.read)) this.expect(record)
    }
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  /** The phone got a message: its receipts come in their time. */
  expect(record: ShownRecord): void {
    if (record.quiet) return
    const { deliveredAfterMs, readAfterMs } = this.#parts.behaviour()
    this.#after(deliveredAfterMs, () => {
      if (!record.delivered) this.delivered(record)
      if (readAfterMs !== null) this.#after(readAfterMs - deliveredAfterMs, () => this.#tellRead([record]))
    })
  }

  delivered(record: ShownRecord): void {
    record.delivered = true
    this.#parts.chats.save(record)
    this.#tell(record, {})
  }

  /** The recipient opens the chat. Answers how many messages became read. */
  read(recipient: Phone, sender: Phone, id?: string): number {
    const one = id === undefined ? undefined : this.#parts.chats.find(sender, recipient, id)
    if (id !== undefined && !one) throw new Refused(`${recipient} was shown no message ${id} from ${sender}`)
    const records = one ? [one] : this.#parts.chats.unread(sender, recipient)
    return this.#tellRead(records)
  }

  /** A phone asks for a message again. From the second time on it brings fresh keys of its own. */
  askAgain(lost: Unreadable): void {
    const { retries, phones, delivery, accounts } = this.#parts
    const key = retryKey(lost)
    const count = (retries.get(key) ?? 0) + 1
    if (count > MOST_RETRIES) return
    retries.set(key, count)
    retries.trim(MOST_REMEMBERED)
    const phone = phones.of(lost.phone)
    const t = this.#seconds()
    const content = [
      node('retry', { count: String(count), id: lost.id, t, v: '1' }),
      node('registration', {}, encodeBigEndian(phone.registrationId))
    ]
    if (count > 1) content.push(node('keys', {}, retryKeyNodes(phone.bundle())))
    const attrs: Record<string, string> = {
      from: jidOf({ phone: lost.phone, device: 0 }, lost.by),
      id: lost.id,
      type: 'retry',
      t
    }
    if (lost.phone === lost.sender.phone) attrs['recipient'] = lost.chat
    if (accounts.companion(lost.sender)?.linked) delivery.post(lost.sender, node('receipt', attrs, content))
  }

  /** How often this message could not be read before. */
  failures(lost: Pick<Unreadable, 'id' | 'sender' | 'phone'>): number {
    return this.#parts.retries.get(retryKey(lost)) ?? 0
  }

  /** A receipt of a linked device for something it got. */
  async take(from: DeviceAddress, receipt: BinaryNode): Promise<void> {
    const { id = '', type, to } = receipt.attrs
    const sender = addressOf(to)
    if (type === 'retry') {
      if (sender) await this.#passRetry(from, sender, id, receipt)
      return
    }
    const list = firstChild(receipt)
    const ids = [id, ...childrenOf(list, 'item').map(item => item.attrs['id'] ?? '')]
    for (const one of ids) {
      this.#parts.delivery.settle(from, { kind: 'message', id: one, to })
      if (sender && TOLD.has(type)) this.#pass(from, sender.phone, one, type)
    }
  }

  async #passRetry(from: DeviceAddress, sender: DeviceAddress, id: string, receipt: BinaryNode): Promise<void> {
    if (sender.device === 0) {
      await this.#parts.inbound.again(sender.phone, from, id, receipt)
      return
    }
    if (!this.#parts.accounts.companion(sender)?.linked) return
    const by = this.#parts.chats.find(sender.phone, from.phone, id)?.by ?? 'pn'
    const attrs = { from: jidOf(from, by), id, type: 'retry', t: this.#seconds() }
    this.#parts.delivery.post(sender, {
      tag: 'receipt',
      attrs,
      ...(receipt.content ? { content: receipt.content } : {})
    })
  }

  /** A linked device got or read a message of another linked account. */
  #pass(from: DeviceAddress, sender: Phone, id: string, type: string | undefined): void {
    const record = this.#parts.chats.find(sender, from.phone, id)
    if (!record || record.quiet) return
    record.delivered = true
    if (type === 'read') record.read = true
    this.#parts.chats.save(record)
    this.#tell(record, type === undefined ? {} : { type }, from)
  }

  #tellRead(records: readonly ShownRecord[]): number {
    const fresh = records.filter(record => !record.read)
    const [first, ...rest] = fresh
    if (!first) return 0
    for (const record of fresh) {
      record.delivered = true
      record.read = true
      this.#parts.chats.save(record)
    }
    if (!first.quiet) {
      const items = rest.map(({ id }) => node('item', { id }))
      this.#tell(first, { type: 'read' }, undefined, items.length > 0 ? [node('list', {}, items)] : undefined)
    }
    return fresh.length
  }

  /** Tells every linked device of the sender. */
  #tell(record: ShownRecord, extra: Record<string, string>, who?: DeviceAddress, content?: BinaryNode[]): void {
    const from = jidOf(who ?? { phone: record.to, device: 0 }, record.by)
    const stanza = node('receipt', { from, id: record.id, ...extra, t: this.#seconds() }, content)
    for (const companion of this.#parts.accounts.linkedDevices(record.from))
      this.#parts.delivery.post(companion, stanza)
  }

  #after(ms: number, work: () => void): void {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer)
        work()
      },
      Math.max(0, ms)
    )
    this.#timers.add(timer)
  }

  #seconds(): string {
    return String(Math.floor(this.#parts.clock() / 1000))
  }
}

function retryKey({ sender, phone, id }: Pick<Unreadable, 'id' | 'sender' | 'phone'>): string {
  return `${sender.phone}/${phone}/${id}`
}
