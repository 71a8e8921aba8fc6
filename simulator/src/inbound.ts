/** What simulated phones write to linked devices: messages of contacts, and the history from the owner's own phone. */

import { randomBytes } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import type { Accounts } from './accounts.js'
import { type Addressing, type DeviceAddress, jidOf, keyOf, originOf } from './addresses.js'
import { mimeTypeOf, sealFile } from './attachments.js'
import { bundleInRetry } from './bundles.js'
import { type BinaryNode, base64, node, proto, unbase64 } from './codec.js'
import type { Delivery } from './delivery.js'
import type { Sealed } from './phone.js'
import type { Phones } from './phones.js'
import type { CompanionKeys } from './prekeys.js'
import type { CompanionRecord, Records } from './records.js'
import { type Phone, Refused } from './types.js'

const MOST_REMEMBERED = 5000
const MEDIA_URL = 'https://mmg.whatsapp.net'

/** Where encrypted files go; answers their path on the media host. */
export interface MediaKeeper {
  keep(bytes: Uint8Array): string
}

export interface InboundParts {
  readonly accounts: Accounts
  readonly delivery: Delivery
  readonly keys: CompanionKeys
  readonly phones: Phones
  readonly sent: Records['sent']
  readonly media: MediaKeeper | null
  readonly historyAs: 'inline' | 'external'
  readonly by: Addressing
  readonly clock: () => number
}

export class Inbound {
  readonly #parts: InboundParts

  constructor(parts: InboundParts) {
    this.#parts = parts
  }

  /** A contact writes to an account, on all its linked devices. */
  async send(contact: Phone, to: Phone, text: string, options: { id?: string; media?: Uint8Array }): Promise<string> {
    const { accounts, phones } = this.#parts
    if (phones.isAbsent(contact)) throw new Refused(`${contact} is set absent: it cannot write to anybody`)
    const devices = accounts.linkedDevices(to)
    if (devices.length === 0) throw new Refused(`${to} has no linked device that could get a message: pair one first`)
    const id = options.id ?? newId()
    const message = options.media ? this.#image(options.media, text) : { conversation: text }
    const type = options.media ? 'media' : 'text'
    const attrs = { id, t: this.#seconds(), type, notify: nameOf(contact, accounts) }
    const origin = originOf({ phone: contact, device: 0 }, this.#parts.by)
    for (const device of devices) await this.#post(contact, device, message, { ...origin, ...attrs })
    if (contact !== to) await this.#copyToOwnDevices(contact, to, message, attrs)
    return id
  }

  /** After its first login a device gets its history from the phone it belongs to. */
  async history(companion: CompanionRecord): Promise<void> {
    if (companion.historySent) return
    companion.historySent = true
    this.#parts.accounts.saveCompanion(companion)
    const syncType = proto.HistorySync.HistorySyncType.RECENT
    const history = proto.HistorySync.encode({ syncType, progress: 100, chunkOrder: 1, conversations: [] }).finish()
    const notification = { syncType, progress: 100, chunkOrder: 1, ...this.#historyPayload(deflateSync(history)) }
    const message = {
      protocolMessage: {
        type: proto.Message.ProtocolMessage.Type.HISTORY_SYNC_NOTIFICATION,
        historySyncNotification: notification
      }
    }
    const origin = originOf({ phone: companion.phone, device: 0 }, this.#parts.by)
    const attrs = { ...origin, id: newId(), t: this.#seconds(), type: 'text', category: 'peer' }
    await this.#post(companion.phone, companion, message, attrs)
  }

  /** A device could not read a message and asks for it again: a new session, from the keys it brought or left here. */
  async again(contact: Phone, device: DeviceAddress, id: string, receipt: BinaryNode): Promise<void> {
    const kept = this.#parts.sent.get(sentKey(contact, device, id))
    if (!kept) return
    const message = proto.Message.decode(unbase64(kept.message))
    const bundle = bundleInRetry(receipt)
    const sealed = await this.#parts.phones
      .of(contact)
      .encrypt(device, message, () => bundle ?? this.#bundleOf(device), true)
    this.#parts.delivery.resend(device, stanzaOf(kept.attrs, sealed, message))
  }

  async #post(
    contact: Phone,
    device: DeviceAddress,
    message: proto.IMessage,
    attrs: Record<string, string>
  ): Promise<void> {
    const { phones, sent, delivery } = this.#parts
    const sealed = await phones.of(contact).encrypt(device, message, () => this.#bundleOf(device))
    const bytes = base64(proto.Message.encode(message).finish())
    sent.set(sentKey(contact, device, attrs['id'] ?? ''), { message: bytes, attrs })
    sent.trim(MOST_REMEMBERED)
    delivery.post(device, stanzaOf(attrs, sealed, message))
  }

  /** Whoever writes from a phone sees it on the devices linked to that phone too. */
  async #copyToOwnDevices(
    contact: Phone,
    to: Phone,
    message: proto.IMessage,
    attrs: Record<string, string>
  ): Promise<void> {
    const { accounts, by } = this.#parts
    const origin = originOf({ phone: contact, device: 0 }, by, to)
    const copy = { deviceSentMessage: { destinationJid: jidOf({ phone: to, device: 0 }, by), message } }
    for (const device of accounts.linkedDevices(contact))
      await this.#post(contact, device, copy, { ...origin, ...attrs })
  }

  #bundleOf(device: DeviceAddress) {
    const bundle = this.#parts.keys.take(device)
    if (!bundle) throw new Refused(`${device.phone} has just unlinked the device: pair one first`)
    return bundle
  }

  #historyPayload(payload: Buffer): proto.Message.IHistorySyncNotification {
    const { media, historyAs } = this.#parts
    if (historyAs === 'inline' || !media) return { initialHistBootstrapInlinePayload: payload }
    const { bytes, ...file } = sealFile(payload, 'History')
    return { ...file, directPath: media.keep(bytes) }
  }

  #image(image: Uint8Array, caption: string): proto.IMessage {
    const { media } = this.#parts
    if (!media) throw new Refused('Start the simulator with a media store to send images')
    const { bytes, ...file } = sealFile(image, 'Image')
    const directPath = media.keep(bytes)
    const url = `${MEDIA_URL}${directPath}`
    return { imageMessage: { ...file, directPath, url, caption, mimetype: mimeTypeOf(image) } }
  }

  #seconds(): string {
    return String(Math.floor(this.#parts.clock() / 1000))
  }
}

function newId(): string {
  return `3EB0${randomBytes(9).toString('hex').toUpperCase()}`
}

function stanzaOf(attrs: Record<string, string>, sealed: Sealed, message: proto.IMessage): BinaryNode {
  const inner = message.deviceSentMessage?.message ?? message
  const media: Record<string, string> = inner.imageMessage ? { mediatype: 'image' } : {}
  return node('message', attrs, [node('enc', { v: '2', type: sealed.kind, ...media }, sealed.bytes)])
}

function nameOf(phone: Phone, accounts: Accounts): string {
  return accounts.find(phone)?.name || `Contact ${phone}`
}

function sentKey(contact: Phone, device: DeviceAddress, id: string): string {
  return `${contact}/${keyOf(device)}/${id}`
}
