/**
 * The link to WhatsApp: keeps one connection open, links and unlinks, and tells what happens. What to do when a connection
 * ends is decided here (see endings.ts); how a message is sent is sender.ts' business, the choice of the proxy the server's.
 */
import type { Connection, Hooks, Me } from './baileys.js'
import type { Clock } from './clock.js'
import { classify, type Ending, isFinal } from './endings.js'
import type { Journal } from './journal.js'
import { type Log, whatFailed } from './log.js'
import { Sender } from './sender.js'
import { asksForPasskey, children, receiptsIn, type Stanza } from './stanzas.js'
import type { EventType, Link, Outcome, OutgoingMessage, Phone } from './types.js'

const FIRST_QR_MS = 60_000
const NEXT_QR_MS = 20_000
/** As long as WhatsApp's six QR codes last: then the connection ends, and a pairing code asked for on it is void. */
const CODES_MS = FIRST_QR_MS + 5 * NEXT_QR_MS
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** A connection that lasted this long was a good one; the pauses begin anew. */
const GOOD_MS = 60_000

export interface LinkOptions {
  readonly dial: (hooks: Hooks) => Connection
  readonly isLinked: () => boolean
  /** The link broke off in the middle of being made; whether it did. */
  readonly forgetHalfLink: () => boolean
  readonly journal: Journal
  readonly deviceName: string
  readonly log: Log
  /** The journal can't be written any more: rather stop than lose a word. */
  readonly broken: (error: unknown) => void
  readonly clock: Clock
  readonly random?: () => number
}

export class WhatsAppLink implements Link {
  readonly #options: LinkOptions
  readonly #clock: Clock
  readonly #random: () => number
  readonly #sender: Sender
  /** Ends the pause between two connections: there is something better to do than to wait. */
  readonly #waiting = new AbortController()
  #closed = false
  /** Decided by us rather than by WhatsApp. */
  #verdict: Ending | null = null
  #connection: Connection | null = null
  #leave: (ending: Ending) => void = () => {}
  #running: Promise<void> | null = null
  #open = false
  #openedAt = 0
  #lastInboundAt: number | null = null
  #pauseMs = FIRST_PAUSE_MS
  #showsQr = false
  #codesUntil = 0
  #told: string | null = null
  #wish: { readonly logOut: true } | { readonly pair: Phone } | null = null
  #asked: { readonly phone: Phone; readonly code: Promise<string> } | null = null

  constructor(options: LinkOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#random = options.random ?? Math.random
    this.#sender = new Sender({
      clock: this.#clock,
      random: this.#random,
      log: options.log,
      stop: this.#waiting.signal
    })
  }

  get isOpen(): boolean {
    return this.#open
  }

  get lastInboundAt(): number | null {
    return this.#lastInboundAt
  }

  /** Resolves when there will be no connection any more, rejects if it breaks. */
  start(): Promise<void> {
    this.#running ??= this.#run()
    return this.#running
  }

  async close(): Promise<void> {
    const wasOpen = this.#open
    this.#closed = true
    this.#finish({ kind: 'network', reason: 'stopped' })
    await this.#running
    if (wasOpen) this.#tell('DISCONNECTED', { reason: 'stopped' })
  }

  async send(message: OutgoingMessage, deadline: number): Promise<Outcome> {
    return this.#sender.send(() => (this.#open ? this.#connection : null), message, deadline)
  }

  async beHere(): Promise<void> {
    if (this.#open) await this.#connection?.beHere()
  }

  // --- connections, one after the other ---

  async #run(): Promise<void> {
    while (!this.#closed) {
      const ending = this.#verdict ?? this.#second(await this.#connectOnce())
      if (this.#closed) break
      const gotSomewhere = this.#showsQr || this.#lasted()
      this.#report(ending)
      if (isFinal(ending)) return
      await this.#clock.pause(this.#pauseAfter(ending, gotSomewhere), this.#waiting.signal)
    }
    this.#open = false
  }

  /** On second thoughts: a device that was never quite linked was not logged out. */
  #second(ending: Ending): Ending {
    if (ending.kind !== 'logged_out' || this.#verdict !== null || !this.#options.forgetHalfLink()) return ending
    return { kind: 'restart', reason: 'restart_required' }
  }

  /** From dialling to the end. */
  #connectOnce(): Promise<Ending> {
    return new Promise(resolve => {
      const over = (ending: Ending): void => {
        this.#connection = null
        this.#asked = null
        this.#sender.connectionLost()
        resolve(ending)
      }
      this.#leave = ending => {
        this.#connection?.hangUp()
        over(ending)
      }
      this.#connection = this.#options.dial({
        stanza: stanza => this.#hear(stanza),
        qr: code => this.#showQr(code),
        open: me => this.#opened(me),
        ended: error => over(classify(error))
      })
    })
  }

  /** No connection after this one. */
  #finish(verdict: Ending): void {
    this.#verdict = verdict
    this.#waiting.abort()
    this.#leave(verdict)
  }

  /** Both that are followed at once come after something worked. Otherwise they may come for ever, and would be a storm. */
  #pauseAfter(ending: Ending, gotSomewhere: boolean): number {
    if (gotSomewhere && (ending.kind === 'restart' || ending.kind === 'qr_expired')) return 0
    const pause = this.#pauseMs * (0.5 + this.#random() / 2)
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    return pause
  }

  #lasted(): boolean {
    return this.#open && this.#clock.now() - this.#openedAt >= GOOD_MS
  }

  #report(ending: Ending): void {
    const wasOpen = this.#open
    if (this.#lasted()) this.#pauseMs = FIRST_PAUSE_MS
    this.#open = this.#showsQr = false
    this.#options.log.info('link_ended', {
      type: ending.kind,
      reason: 'reason' in ending ? ending.reason : ending.code
    })
    if (ending.kind === 'proxy') {
      this.#tell('PROXY_ERROR', { code: ending.code, detail: ending.detail })
    } else if (ending.kind === 'refused') {
      this.#tell('AUTH_FAILURE', { code: ending.code })
    } else if (ending.kind === 'passkey') {
      this.#tell('STATUS_CHANGE', { status: 'passkey_required' })
    } else if (wasOpen || isFinal(ending) || (ending.kind !== 'restart' && this.#told !== ending.reason)) {
      // A restart right after the scan is no news; and while nothing works, the same word is not said again and again.
      this.#tell('DISCONNECTED', { reason: ending.reason })
    }
    this.#told = 'reason' in ending ? ending.reason : null
  }

  #opened(me: Me): void {
    this.#open = true
    this.#openedAt = this.#clock.now()
    this.#told = null
    this.#showsQr = false
    this.#options.log.info('link_open')
    this.#tell('CONNECTED', { phoneNumber: me.phone, jid: me.address, fingerprint: this.#options.deviceName })
    this.#connection?.deliverInbox().catch(error => this.#options.log.error('inbox_failed', whatFailed(error)))
    if (this.#wish !== null && 'logOut' in this.#wish) this.#fulfil()
  }

  // --- what WhatsApp says ---

  #hear(stanza: Stanza): void {
    const now = this.#clock.now()
    this.#lastInboundAt = now
    this.#sender.hear(stanza)
    for (const { type, whatsappId, timestamp } of receiptsIn(stanza, this.#connection?.me ?? [], now)) {
      const once = `${type}/${whatsappId}`
      this.#tell(type, { whatsappId, timestamp }, once)
    }
    if (asksForPasskey(stanza) && !this.#options.isLinked()) {
      this.#finish({ kind: 'passkey', reason: 'passkey_required' })
    }
    if (this.#asked !== null) this.#hearOfPairing(stanza)
  }

  #tell(type: EventType, data: Record<string, unknown>, once?: string): void {
    try {
      this.#options.journal.add({ kind: 'event', type, timestamp: this.#clock.now(), data }, once)
    } catch (error) {
      this.#options.broken(error)
    }
  }

  // --- linking and unlinking ---

  #showQr(qr: string): void {
    const now = this.#clock.now()
    const expiresAt = now + (this.#showsQr ? NEXT_QR_MS : FIRST_QR_MS)
    if (!this.#showsQr) this.#codesUntil = now + CODES_MS
    this.#showsQr = true
    this.#told = null
    this.#tell('QR_CODE', { qr, expiresAt })
    if (this.#wish !== null) this.#fulfil()
  }

  async pair(phone: Phone): Promise<void> {
    this.#wish = { pair: phone }
    if (this.#showsQr) this.#fulfil()
  }

  async logOut(): Promise<void> {
    this.#wish = { logOut: true }
    if (this.#open || this.#showsQr || !this.#options.isLinked()) this.#fulfil()
  }

  /** At once, or when there is a connection that can do it. */
  #fulfil(): void {
    const wish = this.#wish
    this.#wish = null
    if (wish === null) return
    const doing = 'pair' in wish ? this.#askForCode(wish.pair) : this.#unlink()
    doing.catch(error => {
      this.#options.log.warn('order_failed', whatFailed(error))
      // The device is still linked as far as anyone knows, so the next connection begins with this.
      if ('logOut' in wish) this.#wish ??= wish
    })
  }

  async #askForCode(phone: Phone): Promise<void> {
    const connection = this.#connection
    if (connection === null) return
    const code = connection.requestPairingCode(phone)
    this.#asked = { phone, code }
    await code
  }

  /** The code is worth nothing before WhatsApp has accepted it. */
  #hearOfPairing(stanza: Stanza): void {
    const asked = this.#asked
    if (asked === null || stanza.tag !== 'iq') return
    const accepted = children(stanza).some(child => child.tag === 'link_code_companion_reg')
    if (stanza.attrs['type'] === 'result' && accepted) {
      this.#asked = null
      const expiresAt = this.#codesUntil
      asked.code.then(
        code => this.#tell('PAIRING_CODE', { code, phoneNumber: asked.phone, expiresAt }),
        error => this.#options.log.warn('pairing_failed', whatFailed(error))
      )
    } else if (stanza.attrs['type'] === 'error') {
      this.#asked = null
      this.#options.log.warn('pairing_refused', { code: children(stanza)[0]?.attrs['code'] ?? 'unknown' })
    }
  }

  async #unlink(): Promise<void> {
    if (this.#open) await this.#connection?.unlink()
    this.#finish({ kind: 'logged_out', reason: 'logged_out' })
  }
}
