/** One line for each fault of the server, for the control API and the command line. What faults do is in the server. */
import type { FaultKind } from './types.js'

/** A kind that is not described here does not compile. */
export const FAULT_HELP: Record<FaultKind, string> = {
  login_failure:
    'the login is answered with a failure of this --code (401 logged out, 403 blocked, 405 too old, 503 …)',
  ack_error: 'a message is not kept and answered with an error of this --code (429 too fast, 463 restricted, for --ms)',
  drop_before_ack: 'a message is kept, and the connection ends before its ack',
  drop_message: 'the connection ends, and the message was never taken',
  no_ack: 'a message is kept and no ack ever comes; the connection stays',
  mute: 'a request is never answered (--request says which)',
  slow: 'a request is answered after --ms (--request says which)',
  silence: 'the server reads and says nothing any more, not even to pings',
  no_prekeys: 'a request for the keys of a recipient finds nothing',
  undecryptable: "the recipient's phone can't decrypt and asks for the message again",
  http_error: 'the websocket upgrade is answered with HTTP --code',
  passkey: 'after the scan the server asks for a passkey instead of pairing',
  no_receipts: 'delivered and read never come'
}

export const FAULT_KINDS = Object.keys(FAULT_HELP) as FaultKind[]
