/** The server behind the border, put together: takes connections, and hands each stanza to whoever handles it. */

import type { WebSocket } from 'ws'
import { Accounts } from './accounts.js'
import type { Addressing, DeviceAddress } from './addresses.js'
import { Announcements } from './announcements.js'
import { newServerIdentity, type ServerIdentity } from './certificates.js'
import { Chats } from './chats.js'
import { type BinaryNode, firstChild, node } from './codec.js'
import { Connection } from './connection.js'
import { Delivery } from './delivery.js'
import { Faults } from './faults.js'
import { Inbound, type MediaKeeper } from './inbound.js'
import { Lines } from './lines.js'
import { LinkCodes } from './linkcode.js'
import { Login } from './login.js'
import { Messages } from './messages.js'
import { Pairing } from './pairing.js'
import { Phones } from './phones.js'
import { CompanionKeys } from './prekeys.js'
import { Receipts } from './receipts.js'
import { type CompanionRecord, openRecords, type Records } from './records.js'
import { Requests } from './requests.js'
import { Store } from './state.js'
import type { Behaviour } from './types.js'

const DEFAULT_BEHAVIOUR: Behaviour = { deliveredAfterMs: 20, readAfterMs: null }

export interface ExchangeOptions {
  readonly dataDir: string | null
  readonly media: MediaKeeper | null
  readonly historyAs: 'inline' | 'external'
  readonly inboundBy: Addressing
  readonly clock: () => number
  readonly log: (line: string) => void
}

export class Exchange {
  readonly faults = new Faults()
  readonly lines = new Lines()
  readonly accounts: Accounts
  readonly chats: Chats
  readonly delivery: Delivery
  readonly inbound: Inbound
  readonly linkCodes: LinkCodes
  readonly messages: Messages
  readonly pairing: Pairing
  readonly phones: Phones
  readonly receipts: Receipts
  readonly requests: Requests
  readonly #announcements: Announcements
  readonly #connections = new Set<Connection>()
  readonly #identity: ServerIdentity
  readonly #keys: CompanionKeys
  readonly #log: (line: string) => void
  readonly #login: Login
  readonly #records: Records
  readonly #store: Store

  constructor(options: ExchangeOptions) {
    const { clock, inboundBy: by, media, historyAs } = options
    const { faults, lines } = this
    this.#log = options.log
    this.#store = new Store(options.dataDir)
    const records = openRecords(this.#store)
    const { sent, retries } = records
    this.#records = records
    this.#identity = records.server.get('identity') ?? newServerIdentity(clock())
    records.server.set('identity', this.#identity)
    const accounts = new Accounts(records)
    const phones = new Phones(records)
    const chats = new Chats(records.shown)
    const delivery = new Delivery(records.waiting, lines)
    const announcements = new Announcements(delivery, lines, clock)
    const keys = new CompanionKeys(records, (address, left) => announcements.keysRunLow(address, left))
    const inbound = new Inbound({ accounts, delivery, keys, phones, sent, media, historyAs, by, clock })
    const behaviour = () => this.behaviour
    const receipts = new Receipts({ accounts, chats, delivery, inbound, phones, retries, behaviour, clock })
    const onLinked = (address: DeviceAddress) => announcements.devicesChanged('add', address)
    const pairing = new Pairing({ accounts, phones, faults, clock, onLinked })
    const linkCodes = new LinkCodes(pairing, phones, clock)
    const onLogOut = (companion: CompanionRecord) => this.unlink(companion)
    const onReady = (companion: CompanionRecord) => this.#sendHistory(companion)
    const asked = { accounts, delivery, faults, keys, linkCodes, pairing, phones, clock, onLogOut, onReady }
    this.accounts = accounts
    this.chats = chats
    this.delivery = delivery
    this.inbound = inbound
    this.linkCodes = linkCodes
    this.messages = new Messages({ accounts, chats, delivery, faults, phones, receipts, by, clock })
    this.pairing = pairing
    this.phones = phones
    this.receipts = receipts
    this.requests = new Requests(asked)
    this.#announcements = announcements
    this.#keys = keys
    this.#login = new Login({ accounts, delivery, faults, lines, clock })
    receipts.resume()
  }

  get behaviour(): Behaviour {
    return this.#records.behaviour.get('all') ?? DEFAULT_BEHAVIOUR
  }

  set behaviour(behaviour: Behaviour) {
    this.#records.behaviour.set('all', behaviour)
  }

  /** A client opened a websocket. */
  accept(socket: WebSocket): void {
    const connection = new Connection(socket, {
      identity: this.#identity,
      faults: this.faults,
      log: this.#log,
      keepState: () => this.keepState(),
      handlers: {
        onHello: (from, payload) => {
          if (payload.devicePairingData) this.pairing.begin(from, payload)
          else this.#login.begin(from, payload)
        },
        onStanza: (from, stanza) => this.#onStanza(from, stanza),
        onClose: from => {
          this.#connections.delete(from)
          this.lines.remove(from)
          this.pairing.ended(from)
        }
      }
    })
    this.#connections.add(connection)
  }

  /** The device is not linked any more: cut off, and with nothing left of it. */
  unlink(companion: CompanionRecord): void {
    this.accounts.unlink(companion)
    this.delivery.forget(companion)
    this.#keys.forget(companion)
    this.lines.of(companion)?.streamError(401, node('conflict', { type: 'device_removed' }))
    this.#announcements.devicesChanged('remove', companion)
  }

  keepState(): void {
    this.#store.flush()
  }

  close(): void {
    this.receipts.stop()
    for (const connection of this.#connections) connection.drop()
    this.#store.close()
  }

  async #onStanza(from: Connection, stanza: BinaryNode): Promise<void> {
    if (stanza.tag === 'iq') {
      this.requests.take(from, stanza)
      return
    }
    this.requests.count(`${stanza.tag}:${stanza.attrs['type'] ?? '-'}:${firstChild(stanza)?.tag ?? '-'}`)
    if (stanza.tag === 'message') await this.messages.take(from, stanza)
    else if (from.address && stanza.tag === 'receipt') await this.#takeReceipt(from, from.address, stanza)
    else if (from.address && stanza.tag === 'ack') this.#settle(from.address, stanza)
  }

  async #takeReceipt(from: Connection, address: DeviceAddress, receipt: BinaryNode): Promise<void> {
    await this.receipts.take(address, receipt)
    const { id = '', to = '', type } = receipt.attrs
    from.send(node('ack', { class: 'receipt', id, from: to, ...(type ? { type } : {}) }))
  }

  #settle(address: DeviceAddress, ack: BinaryNode): void {
    const { class: kind, id = '', type, to, error } = ack.attrs
    if (kind === 'message' || kind === 'receipt' || kind === 'notification') {
      this.delivery.settle(address, { kind, id, type, to, refused: error !== undefined })
    }
  }

  #sendHistory(companion: CompanionRecord): void {
    this.inbound.history(companion).catch(error => {
      this.#log(`no history for ${companion.phone}: ${error instanceof Error ? error.message : 'unknown error'}`)
    })
  }
}
