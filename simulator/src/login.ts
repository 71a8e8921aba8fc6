/** A device that is already linked says hello: success, or the reason why not. */

import { randomBytes } from 'node:crypto'
import type { Accounts } from './accounts.js'
import { jidOf } from './addresses.js'
import { base64, node, SERVER } from './codec.js'
import type { Connection } from './connection.js'
import type { Delivery } from './delivery.js'
import type { Faults } from './faults.js'
import type { Lines } from './lines.js'
import type { ClientPayload } from './noise.js'
import type { CompanionRecord } from './records.js'

const NOT_LINKED = 401
const BANNED = 403

export interface LoginParts {
  readonly accounts: Accounts
  readonly delivery: Delivery
  readonly faults: Faults
  readonly lines: Lines
  readonly clock: () => number
}

export class Login {
  readonly #parts: LoginParts

  constructor(parts: LoginParts) {
    this.#parts = parts
  }

  begin(connection: Connection, payload: ClientPayload): void {
    const { accounts, faults } = this.#parts
    const address = { phone: String(payload.username ?? ''), device: payload.device ?? 0 }
    const companion = accounts.companion(address)
    if (!companion?.linked || companion.noiseKey !== base64(connection.clientKey)) {
      fail(connection, NOT_LINKED)
    } else if (accounts.find(address.phone)?.banned) {
      fail(connection, BANNED)
    } else {
      const fault = faults.strike('login_failure', address.phone)
      if (fault) fail(connection, fault.code ?? 500)
      else this.#welcome(connection, companion, payload.passive === true)
    }
  }

  #welcome(connection: Connection, companion: CompanionRecord, passive: boolean): void {
    const { accounts, delivery, lines, clock } = this.#parts
    const former = lines.put(companion, connection)
    connection.address = { phone: companion.phone, device: companion.device }
    former?.streamError(null, node('conflict', { type: 'replaced' }))
    companion.logins += 1
    accounts.saveCompanion(companion)
    connection.send(
      node('success', {
        t: String(Math.floor(clock() / 1000)),
        lid: jidOf(companion, 'lid'),
        display_name: accounts.find(companion.phone)?.name ?? '',
        props: '27',
        abprops: '1',
        location: 'sim',
        companion_enc_static: base64(randomBytes(32))
      })
    )
    connection.send(routing())
    if (!passive) delivery.begin(companion)
  }
}

/** Clients bring this back as the prefix of their next intro. */
function routing(): ReturnType<typeof node> {
  const info = node('routing_info', {}, Buffer.from([0x08, 0x08, 0x05]))
  return node('ib', { from: SERVER }, [node('edge_routing', {}, [info])])
}

function fail(connection: Connection, reason: number): void {
  connection.send(node('failure', { reason: String(reason), location: 'sim' }))
  connection.end()
}
