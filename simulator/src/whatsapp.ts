/** The controls of `WhatsApp` over an exchange: what people, the control API and tests may do and see. */

import { jidOf, phoneOf } from './addresses.js'
import { viewOf } from './chats.js'
import { node } from './codec.js'
import type { Connection } from './connection.js'
import type { Exchange } from './exchange.js'
import type {
  AccountView,
  Behaviour,
  Fault,
  FaultView,
  PendingView,
  Phone,
  ShownMessage,
  WhatsApp,
  WireMessage
} from './types.js'

type Filter = { from?: Phone; to?: Phone }

export class Simulator implements WhatsApp {
  readonly port: number
  readonly #exchange: Exchange
  readonly #closeBorder: () => Promise<void>

  constructor(exchange: Exchange, port: number, closeBorder: () => Promise<void>) {
    this.#exchange = exchange
    this.port = port
    this.#closeBorder = closeBorder
  }

  accounts(): AccountView[] {
    const { accounts, lines, delivery } = this.#exchange
    return [...accounts.all()].map(({ phone, name, banned }) => {
      const device = accounts.newest(phone)
      return {
        phone,
        lid: jidOf({ phone, device: 0 }, 'lid'),
        name,
        online: device !== undefined && lines.of(device) !== undefined,
        linked: device?.linked ?? false,
        banned,
        logins: device?.logins ?? 0,
        waiting: device ? delivery.waiting(device) : 0,
        deviceName: device?.name ?? ''
      }
    })
  }

  pending(): PendingView[] {
    return this.#exchange.pairing.views()
  }

  faults(): FaultView[] {
    return this.#exchange.faults.all()
  }

  shown(filter: Filter = {}): ShownMessage[] {
    return [...this.#exchange.chats.all()].filter(fits(filter)).map(viewOf)
  }

  wire(filter: Filter = {}): WireMessage[] {
    return this.#exchange.messages.wire().filter(fits(filter))
  }

  requests(): Record<string, number> {
    return this.#exchange.requests.counts()
  }

  async scan(qr: string, phone: Phone, name = ''): Promise<void> {
    await this.#exchange.pairing.scan(qr, phoneOf(phone), name)
  }

  async enterCode(code: string, phone: Phone, name = ''): Promise<void> {
    await this.#exchange.linkCodes.enter(code, phoneOf(phone), name)
  }

  async sendFrom(
    contact: Phone,
    to: Phone,
    text: string,
    options: { id?: string; media?: Uint8Array } = {}
  ): Promise<string> {
    const id = await this.#exchange.inbound.send(phoneOf(contact), phoneOf(to), text, options)
    this.#exchange.keepState()
    return id
  }

  async read(contact: Phone, from: Phone, id?: string): Promise<number> {
    return this.#exchange.receipts.read(phoneOf(contact), phoneOf(from), id)
  }

  setAbsent(phones: readonly Phone[], absent: boolean): void {
    for (const phone of phones.map(phoneOf)) this.#exchange.phones.setAbsent(phone, absent)
  }

  behave(behaviour: Partial<Behaviour>): void {
    this.#exchange.behaviour = { ...this.#exchange.behaviour, ...behaviour }
  }

  ban(phone: Phone): void {
    this.#setBanned(phone, true)
    for (const line of this.#online(phone)) line.streamError(403)
  }

  unban(phone: Phone): void {
    this.#setBanned(phone, false)
  }

  /** All linked devices of the phone, so that afterwards none is. */
  logOut(phone: Phone): void {
    const { accounts } = this.#exchange
    const { phone: owner } = accounts.need(phoneOf(phone))
    for (const companion of accounts.linkedDevices(owner)) this.#exchange.unlink(companion)
    this.#exchange.keepState()
  }

  replace(phone: Phone): void {
    for (const line of this.#online(phone)) line.streamError(null, node('conflict', { type: 'replaced' }))
  }

  drop(phone: Phone): void {
    for (const line of this.#online(phone)) line.drop()
  }

  streamError(phone: Phone, code: number): void {
    for (const line of this.#online(phone)) line.streamError(code)
  }

  addFault(fault: Fault): FaultView {
    return this.#exchange.faults.add(fault)
  }

  removeFault(id: number): boolean {
    return this.#exchange.faults.remove(id)
  }

  onShown(listener: (message: ShownMessage) => void): () => void {
    return this.#exchange.chats.onShown(listener)
  }

  async close(): Promise<void> {
    this.#exchange.close()
    await this.#closeBorder()
  }

  #setBanned(phone: Phone, banned: boolean): void {
    const { accounts } = this.#exchange
    const account = accounts.need(phoneOf(phone))
    account.banned = banned
    accounts.save(account)
  }

  #online(phone: Phone): Connection[] {
    const { accounts, lines } = this.#exchange
    return lines.ofPhone(accounts.need(phoneOf(phone)).phone)
  }
}

function fits(filter: Filter): (message: { from: Phone; to: Phone }) => boolean {
  return ({ from, to }) => (!filter.from || filter.from === from) && (!filter.to || filter.to === to)
}
