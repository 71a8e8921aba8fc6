/** The words that the worker's parts share. Imports nothing, so that every part may use it. */

/** E.164 digits without the plus sign. */
export type Phone = string

/** What the server hands over to be sent. */
export interface OutgoingMessage {
  readonly messageId: string
  readonly whatsappId: string
  readonly to: Phone
  readonly text: string
  readonly attempt: number
  readonly leaseUntil: number
}

/** Something to do besides sending. */
export type Order =
  | { readonly id: number; readonly type: 'logout' }
  | { readonly id: number; readonly type: 'pair'; readonly phone: Phone }

export type FailureClass = 'retryable' | 'not_on_whatsapp' | 'refused' | 'rate_limited' | 'restricted' | 'unconfirmed'

/** How an attempt to send ended. `until` is only there for a restriction whose end WhatsApp states. */
export type Outcome =
  | { readonly sent: true }
  | { readonly sent: false; readonly class: FailureClass; readonly error: string; readonly until: number | null }

export type EventType =
  | 'QR_CODE'
  | 'PAIRING_CODE'
  | 'CONNECTED'
  | 'DISCONNECTED'
  | 'STATUS_CHANGE'
  | 'MESSAGE_DELIVERED'
  | 'MESSAGE_READ'
  | 'MESSAGE_RECEIVED'
  | 'PROXY_ERROR'
  | 'AUTH_FAILURE'

/** One thing to tell the server, in order and until it is answered: an event, or how an attempt ended. */
export type Report =
  | {
      readonly kind: 'event'
      readonly type: EventType
      readonly timestamp: number
      readonly data: Record<string, unknown>
    }
  | { readonly kind: 'ack' | 'nack'; readonly body: Record<string, unknown> }

/** The link to WhatsApp, as the rest of the worker sees it. */
export interface Link {
  readonly isOpen: boolean
  /** When WhatsApp was last heard, ms; null before the first frame. */
  readonly lastInboundAt: number | null
  /** Never throws: whatever happens is an outcome. Ends before `deadline` (ms). */
  send(message: OutgoingMessage, deadline: number): Promise<Outcome>
  /** Ask for a pairing code; told as PAIRING_CODE once WhatsApp has accepted it. */
  pair(phone: Phone): Promise<void>
  /** Show the account as present, at every beat while that is wanted. */
  beHere?(): Promise<void>
  /** Unlink this device; told as DISCONNECTED `logged_out`. */
  logOut(): Promise<void>
  /** Hang up for good. Resolves once nothing is under way any more. */
  close(): Promise<void>
}
