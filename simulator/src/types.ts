/** The words of the simulator: what its server offers to the control API, to its people and to tests. */

/** E.164 digits without the plus sign. */
export type Phone = string

export interface AccountView {
  readonly phone: Phone
  readonly lid: string
  readonly name: string
  /** Whether the linked device has a socket open right now. */
  readonly online: boolean
  readonly linked: boolean
  readonly banned: boolean
  /** How often its linked device logged in. */
  readonly logins: number
  /** Stanzas that wait for it while it is offline. */
  readonly waiting: number
  readonly deviceName: string
}

/** A companion that shows a QR code, or that asked for a pairing code. */
export interface PendingView {
  readonly kind: 'qr' | 'code'
  /** Of a pairing code: the number it was asked for. */
  readonly phone: Phone | null
  readonly since: number
}

/** One message as the phone of the recipient shows it: once for each id, however often it came. */
export interface ShownMessage {
  readonly id: string
  readonly from: Phone
  readonly to: Phone
  readonly text: string
  /** When the server first took it, ms. */
  readonly at: number
  /** How many stanzas with this id reached the server. */
  readonly stanzas: number
  readonly delivered: boolean
  readonly read: boolean
}

/** One stanza as it came over the wire, whatever became of it. */
export interface WireMessage {
  readonly id: string
  readonly from: Phone
  readonly to: Phone
  readonly at: number
  /** Device addresses it was encrypted for. Empty of the recipient's: nobody can read it, nobody sends a receipt. */
  readonly devices: readonly string[]
  /** Null if no device of the recipient was addressed or could decrypt it. */
  readonly text: string | null
  /** What the server answered: 'ack', the code of an error, or 'none' if the answer was dropped by a fault. */
  readonly answer: string
}

/** A fault that waits for its moment. `times` counts down; without it the fault stays until removed. */
export interface Fault {
  readonly kind: FaultKind
  /** Only for this account's linked device; without it, for any. */
  readonly phone?: Phone
  /** The code of a failure, a stream error or an error ack. */
  readonly code?: number
  /** For `slow`: how long answers take; for `mute`: ignored. */
  readonly ms?: number
  /** For `mute` and `slow`: which request, as `xmlns:type:child` (see the log of requests), else every one. */
  readonly request?: string
  readonly times?: number
}

export type FaultKind =
  | 'login_failure' // <failure reason=code> instead of success
  | 'ack_error' // <ack error=code> for a message that is not kept
  | 'drop_before_ack' // the message is kept, the connection ends before its ack
  | 'drop_message' // the connection ends and the message was never taken
  | 'no_ack' // the message is kept, no ack comes, the connection stays
  | 'mute' // a request is never answered
  | 'slow' // a request is answered after `ms`
  | 'silence' // the server reads and says nothing any more, not even to pings
  | 'no_prekeys' // key requests for a recipient find nothing
  | 'undecryptable' // the recipient's phone can't decrypt and asks again with a retry receipt
  | 'http_error' // the websocket upgrade is answered with HTTP `code`
  | 'passkey' // after the scan the server asks for a passkey instead of pairing
  | 'no_receipts' // delivered and read never come

export interface FaultView extends Fault {
  readonly id: number
  readonly hits: number
}

/** How the people on the other side behave, for those who were given nothing of their own. */
export interface Behaviour {
  readonly deliveredAfterMs: number
  /** Null: nobody reads by itself. */
  readonly readAfterMs: number | null
}

/** The local WhatsApp: a server, and the phones of everyone. All methods throw `Refused` on bad input. */
export interface WhatsApp {
  readonly port: number
  accounts(): AccountView[]
  pending(): PendingView[]
  faults(): FaultView[]
  /** Newest last. */
  shown(filter?: { from?: Phone; to?: Phone }): ShownMessage[]
  wire(filter?: { from?: Phone; to?: Phone }): WireMessage[]
  /** How often each request (`xmlns:type:child`) was seen. */
  requests(): Record<string, number>

  /** The owner of `phone` scans the QR code with it. */
  scan(qr: string, phone: Phone, name?: string): Promise<void>
  /** The owner types the pairing code into it. */
  enterCode(code: string, phone: Phone, name?: string): Promise<void>
  /** Somebody writes to an account; kept if its device is offline. Answers the id. `media` is sent as an image with this caption. */
  sendFrom(contact: Phone, to: Phone, text: string, options?: { id?: string; media?: Uint8Array }): Promise<string>
  /** The recipient opens the chat: a read receipt for this message, or for all that are unread. */
  read(contact: Phone, from: Phone, id?: string): Promise<number>
  /** Numbers that have no WhatsApp (`true`), or have it again. */
  setAbsent(phones: readonly Phone[], absent: boolean): void
  behave(behaviour: Partial<Behaviour>): void

  /** The account is blocked: its device is cut off and refused with 403 from now on. */
  ban(phone: Phone): void
  unban(phone: Phone): void
  /** The owner removes the linked device on the phone. */
  logOut(phone: Phone): void
  /** Another program takes over with the same credentials. */
  replace(phone: Phone): void
  /** The TCP connection ends without a word. */
  drop(phone: Phone): void
  streamError(phone: Phone, code: number): void

  addFault(fault: Fault): FaultView
  removeFault(id: number): boolean

  /** A message was shown for the first time. Returns the way to stop listening. */
  onShown(listener: (message: ShownMessage) => void): () => void
  close(): Promise<void>
}

/** Bad input to the simulator's own controls. The message says what to do. */
export class Refused extends Error {
  override readonly name = 'Refused'
}
