/**
 * Faults that wait for their moment. Each kind is asked for in exactly one place:
 *
 *   kind             asked for in              what happens
 *   http_error       server.ts, upgrade        the websocket upgrade is answered with HTTP `code` (503)
 *   login_failure    login.ts                  <failure reason=code> (500) instead of <success>
 *   passkey          pairing.ts, after a scan  a passkey is asked for, the pairing goes no further
 *   silence          connection.ts, sending    from then on nothing is said on this connection
 *   mute             requests.ts               the request is not handled and never answered
 *   slow             requests.ts               the answer comes after `ms` (1000)
 *   no_prekeys       requests.ts, keys         keys of anybody but the asker's own account are not found
 *   drop_message     messages.ts, before all   the connection ends and the message was never taken
 *   ack_error        messages.ts, before all   the ack carries error=code (429); nothing is kept. 463 with `ms` also
 *                                              restricts the account for that long (see mex.ts)
 *   drop_before_ack  messages.ts, at the ack   the message is kept, the connection ends without an ack
 *   no_ack           messages.ts, at the ack   the message is kept, no ack comes, the connection stays
 *   undecryptable    messages.ts, phone        the recipient's phone cannot read it and sends a retry receipt
 *   no_receipts      messages.ts, when shown   neither delivered nor read is ever reported for the message
 *
 * They live in memory: a restarted simulator has none.
 */

import { phoneOf } from './addresses.js'
import { FAULT_KINDS } from './fault_help.js'
import { type Fault, type FaultKind, type FaultView, type Phone, Refused } from './types.js'

interface Waiting extends Fault {
  readonly id: number
  hits: number
}

export class Faults {
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0

  add(fault: Fault): FaultView {
    check(fault)
    const waiting = { ...fault, id: ++this.#lastId, hits: 0 }
    this.#waiting.set(waiting.id, waiting)
    return viewOf(waiting)
  }

  remove(id: number): boolean {
    return this.#waiting.delete(id)
  }

  /** Those still waiting; a fault that has happened often enough is gone. */
  all(): FaultView[] {
    return [...this.#waiting.values()].map(viewOf)
  }

  /** The moment of a kind has come, for this account (null: not known yet). Answers the oldest that fits, and counts it. */
  strike(kind: FaultKind, phone: Phone | null, request?: string): Fault | null {
    for (const fault of this.#waiting.values()) {
      if (fault.kind !== kind) continue
      if (fault.phone !== undefined && fault.phone !== phone) continue
      if (fault.request !== undefined && fault.request !== request) continue
      fault.hits += 1
      if (fault.times !== undefined && fault.hits >= fault.times) this.#waiting.delete(fault.id)
      return fault
    }
    return null
  }
}

/** `times` says how often it will still happen. */
function viewOf(fault: Waiting): FaultView {
  return fault.times === undefined ? { ...fault } : { ...fault, times: fault.times - fault.hits }
}

function check(fault: Fault): void {
  if (!FAULT_KINDS.includes(fault.kind)) {
    throw new Refused(`Unknown kind of fault: choose one of ${FAULT_KINDS.join(', ')}`)
  }
  if (fault.phone !== undefined) {
    phoneOf(fault.phone)
    if (fault.kind === 'http_error') {
      throw new Refused('http_error strikes before the server knows whose connection it is: leave the phone out')
    }
  }
  for (const [name, value] of Object.entries({ times: fault.times, code: fault.code, ms: fault.ms })) {
    if (value !== undefined && !(Number.isInteger(value) && value >= (name === 'ms' ? 0 : 1))) {
      throw new Refused(`The ${name} of a fault must be a whole positive number`)
    }
  }
}
