/** What the server tells clients without being asked: that keys run low, and that somebody's devices changed. */

import { randomBytes } from 'node:crypto'
import { type DeviceAddress, jidOf } from './addresses.js'
import { type BinaryNode, node, SERVER } from './codec.js'
import type { Delivery } from './delivery.js'
import type { Lines } from './lines.js'

export class Announcements {
  readonly #delivery: Delivery
  readonly #lines: Lines
  readonly #clock: () => number

  constructor(delivery: Delivery, lines: Lines, clock: () => number) {
    this.#delivery = delivery
    this.#lines = lines
    this.#clock = clock
  }

  /** The device should upload more one-time keys. */
  keysRunLow(address: DeviceAddress, left: number): void {
    const count = node('count', { value: String(left) })
    this.#delivery.post(address, this.#notification('encrypt', SERVER, [count]))
  }

  /** Clients remember who has which devices; those that are connected hear of the change, the others will ask anew. */
  devicesChanged(change: 'add' | 'remove', address: DeviceAddress): void {
    const owner = jidOf({ phone: address.phone, device: 0 }, 'pn')
    const devices = (['pn', 'lid'] as const).map(by => {
      return node('device', { jid: jidOf(address, by), 'key-index': String(address.device) })
    })
    const notification = this.#notification('devices', owner, [node(change, {}, devices)])
    for (const line of this.#lines.all()) if (line.ready) line.send(notification)
  }

  #notification(type: string, from: string, content: BinaryNode[]): BinaryNode {
    const t = String(Math.floor(this.#clock() / 1000))
    return node('notification', { from, type, id: randomBytes(6).toString('hex'), t }, content)
  }
}
