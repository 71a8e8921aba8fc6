/** Which devices are connected right now, one connection each. */

import { type DeviceAddress, keyOf } from './addresses.js'
import type { Connection } from './connection.js'
import type { Phone } from './types.js'

export class Lines {
  readonly #open = new Map<string, Connection>()

  of(address: DeviceAddress): Connection | undefined {
    return this.#open.get(keyOf(address))
  }

  all(): IterableIterator<Connection> {
    return this.#open.values()
  }

  ofPhone(phone: Phone): Connection[] {
    return [...this.#open.values()].filter(connection => connection.address?.phone === phone)
  }

  /** Answers the connection whose place it takes. */
  put(address: DeviceAddress, connection: Connection): Connection | undefined {
    const former = this.of(address)
    this.#open.set(keyOf(address), connection)
    return former
  }

  /** Only if it is still the one: its place may have been taken. */
  remove(connection: Connection): void {
    if (connection.address && this.of(connection.address) === connection) this.#open.delete(keyOf(connection.address))
  }
}
