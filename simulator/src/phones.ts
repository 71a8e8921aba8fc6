/** Everybody's phones. A number has a phone as soon as somebody needs its keys, unless it was set absent. */

import { newPhoneRecord, PhoneDevice } from './phone.js'
import type { Records } from './records.js'
import type { Phone } from './types.js'

export class Phones {
  readonly #records: Pick<Records, 'phones' | 'sessions' | 'absent'>
  readonly #devices = new Map<Phone, PhoneDevice>()

  constructor(records: Pick<Records, 'phones' | 'sessions' | 'absent'>) {
    this.#records = records
  }

  isAbsent(phone: Phone): boolean {
    return this.#records.absent.has(phone)
  }

  setAbsent(phone: Phone, absent: boolean): void {
    if (absent) this.#records.absent.set(phone, true)
    else this.#records.absent.delete(phone)
  }

  of(phone: Phone): PhoneDevice {
    let device = this.#devices.get(phone)
    if (!device) {
      const { phones, sessions } = this.#records
      const record = phones.get(phone) ?? newPhoneRecord()
      phones.set(phone, record)
      device = new PhoneDevice(phone, record, sessions, () => phones.set(phone, record))
      this.#devices.set(phone, device)
    }
    return device
  }
}
