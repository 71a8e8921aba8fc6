/** Who linked which devices. Knows nothing of sockets; `linkedDevices` is what everybody else asks. */

import { type DeviceAddress, keyOf } from './addresses.js'
import type { AccountRecord, CompanionRecord, Records } from './records.js'
import { type Phone, Refused } from './types.js'

/** As many as a real phone allows. */
const MOST_DEVICES = 4

export type NewCompanion = Omit<CompanionRecord, 'linked' | 'logins' | 'historySent'>

export class Accounts {
  readonly #records: Pick<Records, 'accounts' | 'companions'>
  /** The last number given to a device of each phone that is still being linked. */
  readonly #promised = new Map<Phone, number>()

  constructor(records: Pick<Records, 'accounts' | 'companions'>) {
    this.#records = records
  }

  all(): IterableIterator<AccountRecord> {
    return this.#records.accounts.values()
  }

  find(phone: Phone): AccountRecord | undefined {
    return this.#records.accounts.get(phone)
  }

  need(phone: Phone): AccountRecord {
    const account = this.find(phone)
    if (!account) throw new Refused(`${phone} has never linked a device here: pair one first`)
    return account
  }

  save(account: AccountRecord): void {
    this.#records.accounts.set(account.phone, account)
  }

  companion(address: DeviceAddress): CompanionRecord | undefined {
    return this.#records.companions.get(keyOf(address))
  }

  saveCompanion(companion: CompanionRecord): void {
    this.#records.companions.set(keyOf(companion), companion)
  }

  /** Oldest first. */
  linkedDevices(phone: Phone): CompanionRecord[] {
    return this.#devices(phone).filter(companion => companion.linked)
  }

  /** The newest that is linked, else the newest there was. */
  newest(phone: Phone): CompanionRecord | undefined {
    return this.linkedDevices(phone).at(-1) ?? this.#devices(phone).at(-1)
  }

  /** Refuses a phone that cannot link another device. */
  checkRoom(phone: Phone): void {
    if (this.find(phone)?.banned) throw new Refused(`${phone} is banned and cannot link a device: unban it first`)
    if (this.linkedDevices(phone).length >= MOST_DEVICES) {
      throw new Refused(`${phone} has ${MOST_DEVICES} linked devices already: log it out first`)
    }
  }

  /** The address of a device that is about to be linked. */
  nextAddress(phone: Phone): DeviceAddress {
    this.checkRoom(phone)
    const device = Math.max(this.find(phone)?.lastDevice ?? 0, this.#promised.get(phone) ?? 0) + 1
    this.#promised.set(phone, device)
    return { phone, device }
  }

  link(companion: NewCompanion, name: string): CompanionRecord {
    const { phone, device } = companion
    for (const old of this.#devices(phone)) if (!old.linked) this.#records.companions.delete(keyOf(old))
    const account = this.find(phone) ?? { phone, name, banned: false, lastDevice: 0, timelockUntil: 0 }
    account.lastDevice = Math.max(account.lastDevice, device)
    account.name = name || account.name
    this.save(account)
    const linked = { ...companion, linked: true, logins: 0, historySent: false }
    this.saveCompanion(linked)
    return linked
  }

  unlink(companion: CompanionRecord): void {
    companion.linked = false
    this.saveCompanion(companion)
  }

  #devices(phone: Phone): CompanionRecord[] {
    const found: CompanionRecord[] = []
    for (let device = 1; device <= (this.find(phone)?.lastDevice ?? 0); device++) {
      const companion = this.companion({ phone, device })
      if (companion) found.push(companion)
    }
    return found
  }
}
