/**
 * The link to WhatsApp: keeps one connection open, tells what happens on it, and sends. What to do when a connection
 * ends is decided here (see endings.ts); pace, retries of messages and the choice of the proxy are the server's.
 */
import { Acks, failed, outcomeOf } from './acks.js'
import type { Connection, Hooks, Me } from './baileys.js'
import type { Clock } from './clock.js'
import { Directory } from './directory.js'
import { classify, type Ending, isFinal } from './endings.js'
import type { Journal } from './journal.js'
import { type Log, whatFailed } from './log.js'
import { asksForPasskey, children, momentOf, receiptsIn, type Stanza } from './stanzas.js'
import type { EventType, Link, Outcome, OutgoingMessage, Phone } from './types.js'

const ACK_MS = 20_000
const FIRST_QR_MS = 60_000
const NEXT_QR_MS = 20_000
const CODE_MS = 160_000
const TIMELOCK_MS = 5_000
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** A connection that lasted this long was a good one; the pauses begin anew. */
const GOOD_MS = 60_000

export interface LinkOptions {
  readonly dial: (hooks: Hooks) => Connection
  readonly isLinked: () => boolean
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
  readonly #acks = new Acks()
  readonly #directory: Directory
  /** Ends the pause between two connections: there is something better to do than to wait. */
  #waiting = new AbortController()
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
  #told: string | null = null
  #wish: { readonly logOut: true } | { readonly pair: Phone } | null = null
  #asked: { readonly phone: Phone; readonly code: Promise<string> } | null = null
  #sending: Promise<unknown> = Promise.resolve()

  constructor(options: LinkOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#random = options.random ?? Math.random
    this.#directory = new Directory(() => this.#clock.now())
  }

  get isOpen(): boolean {
    return this.#open
  }

  get lastInboundAt(): number | null {
    return this.#lastInboundAt
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    const wasOpen = this.#open
    this.#closed = true
    this.#finish({ kind: 'network', reason: 'stopped' })
    await this.#running
    if (wasOpen) this.#tell('DISCONNECTED', { reason: 'stopped' })
  }

  async beHere(): Promise<void> {
    if (this.#open) await this.#connection?.beHere()
  }

  // --- connections, one after the other ---

  async #run(): Promise<void> {
    while (!this.#closed) {
      const ending = this.#verdict ?? (await this.#connectOnce())
      if (this.#closed) break
      this.#report(ending)
      if (isFinal(ending)) return
      await this.#clock.pause(this.#pauseAfter(ending), this.#waiting.signal)
    }
    this.#open = false
  }

  /** From dialling to the end. */
  #connectOnce(): Promise<Ending> {
    return new Promise(resolve => {
      const over = (ending: Ending): void => {
        this.#connection = null
        this.#asked = null
        this.#acks.giveUpAll()
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

  #pauseAfter(ending: Ending): number {
    if (ending.kind === 'restart' || ending.kind === 'qr_expired') return 0
    const pause = this.#pauseMs * (0.5 + this.#random() / 2)
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    return pause
  }

  #report(ending: Ending): void {
    const wasOpen = this.#open
    if (wasOpen && this.#clock.now() - this.#openedAt >= GOOD_MS) this.#pauseMs = FIRST_PAUSE_MS
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
    if (stanza.tag === 'ack' && stanza.attrs['class'] === 'message') {
      this.#acks.came(stanza.attrs['id'] ?? '', stanza.attrs['error'])
    }
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
    const expiresAt = this.#clock.now() + (this.#showsQr ? NEXT_QR_MS : FIRST_QR_MS)
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
    doing.catch(error => this.#options.log.warn('order_failed', whatFailed(error)))
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
      const expiresAt = momentOf(stanza, this.#clock.now()) + CODE_MS
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
    if (this.#open) await this.#connection?.unlink() // WhatsApp may hang up before it answers, which says the same
    this.#finish({ kind: 'logged_out', reason: 'logged_out' })
  }

  // --- sending ---

  /** One at a time, even if an attempt before this one was given up while the library still worked on it. */
  async send(message: OutgoingMessage, deadline: number): Promise<Outcome> {
    const progress = { onTheWire: false }
    const attempt = this.#sending.then(() => this.#attempt(message, deadline, progress))
    this.#sending = attempt
    const inTime = new AbortController()
    const late = this.#clock
      .pause(deadline - this.#clock.now(), inTime.signal)
      .then(() => whenFailed(progress, 'too_late'))
    try {
      return await Promise.race([attempt, late])
    } finally {
      inTime.abort()
    }
  }

  async #attempt(message: OutgoingMessage, deadline: number, progress: Progress): Promise<Outcome> {
    const connection = this.#connection
    if (!this.#open || connection === null) return failed('retryable', 'not_connected')
    const answer = this.#acks.expect(message.whatsappId)
    try {
      const address = await this.#directory.find(message.to, phone => connection.find(phone))
      if (address === undefined) return failed('retryable', 'lookup_unanswered')
      if (address === null) return failed('not_on_whatsapp', 'not_on_whatsapp')
      await this.#type(connection, address, message.text)
      if (this.#closed || this.#clock.now() >= deadline) return failed('retryable', 'too_late')
      progress.onTheWire = true
      const readable = await connection.send(address, message.whatsappId, message.text)
      if (!readable) return failed('retryable', 'no_recipient_device')
      return await this.#acknowledged(connection, message.whatsappId, answer, deadline)
    } catch (error) {
      this.#options.log.warn('send_failed', { messageId: message.messageId, ...whatFailed(error) })
      return whenFailed(progress, 'send_failed')
    } finally {
      this.#acks.giveUp(message.whatsappId)
    }
  }

  async #acknowledged(
    connection: Connection,
    id: string,
    answer: Promise<{ error: string | undefined } | null>,
    deadline: number
  ): Promise<Outcome> {
    const enough = new AbortController()
    const left = Math.max(0, Math.min(ACK_MS, deadline - this.#clock.now()))
    void this.#clock.pause(left, enough.signal).then(() => this.#acks.giveUp(id))
    const said = await answer
    enough.abort()
    if (said === null) return failed('unconfirmed', this.#open ? 'no_server_ack' : 'connection_lost')
    const until = said.error === '463' ? await this.#restrictedUntil(connection) : null
    return outcomeOf(said.error, until)
  }

  async #restrictedUntil(connection: Connection): Promise<number | null> {
    const enough = new AbortController()
    const late = this.#clock.pause(TIMELOCK_MS, enough.signal).then(() => null)
    try {
      return await Promise.race([connection.restrictedUntil(), late])
    } catch {
      return null // it does not say; the server has its own rule for that
    } finally {
      enough.abort()
    }
  }

  /** One to three seconds, longer for longer texts, never twice the same. */
  async #type(connection: Connection, address: string, text: string): Promise<void> {
    const ms = Math.min(3_000, Math.max(1_000, text.length * 25) * (1 + this.#random() / 2))
    await connection.typing(address, true)
    await this.#clock.pause(ms, this.#waiting.signal)
    await connection.typing(address, false)
  }
}

interface Progress {
  /** From here on WhatsApp may have it, so nobody can say that it failed. */
  onTheWire: boolean
}

const whenFailed = ({ onTheWire }: Progress, error: string): Outcome =>
  failed(onTheWire ? 'unconfirmed' : 'retryable', error)
