/**
 * Sends one message: looks the recipient up, types, sends under the given id, and waits for WhatsApp's answer. Whatever
 * happens is an outcome; what follows from it (again? when?) is the server's business.
 */
import { Acks, type Answer, failed, outcomeOf } from './acks.js'
import type { Connection } from './baileys.js'
import type { Clock } from './clock.js'
import { Directory } from './directory.js'
import { type Log, whatFailed } from './log.js'
import type { Stanza } from './stanzas.js'
import type { Outcome, OutgoingMessage } from './types.js'

const ACK_MS = 20_000
const TIMELOCK_MS = 5_000

export interface SenderParts {
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** The worker ends: what is not on the wire yet stays here. */
  readonly stop: AbortSignal
}

interface Progress {
  /** From here on WhatsApp may have it, so nobody can say that it failed. */
  onTheWire: boolean
}

export class Sender {
  readonly #parts: SenderParts
  readonly #clock: Clock
  readonly #acks = new Acks()
  readonly #directory: Directory
  #sending: Promise<unknown> = Promise.resolve()

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#clock = parts.clock
    this.#directory = new Directory(() => parts.clock.now())
  }

  hear({ tag, attrs }: Stanza): void {
    if (tag === 'ack' && attrs['class'] === 'message') this.#acks.came(attrs['id'] ?? '', attrs['error'])
  }

  connectionLost(): void {
    this.#acks.connectionLost()
  }

  /** One at a time, even if an attempt before this one was given up while the library still worked on it. */
  async send(open: () => Connection | null, message: OutgoingMessage, deadline: number): Promise<Outcome> {
    const progress = { onTheWire: false }
    const attempt = this.#sending.then(() => this.#attempt(open(), message, deadline, progress))
    this.#sending = attempt
    const late = async (): Promise<Outcome> => whenFailed(progress, 'too_late')
    return this.#within(deadline - this.#clock.now(), attempt, late)
  }

  async #attempt(
    connection: Connection | null,
    message: OutgoingMessage,
    deadline: number,
    progress: Progress
  ): Promise<Outcome> {
    if (connection === null) return failed('retryable', 'not_connected')
    const answer = this.#acks.expect(message.whatsappId)
    try {
      const address = await this.#directory.find(message.to, phone => connection.find(phone))
      if (address === undefined) return failed('retryable', 'lookup_unanswered')
      if (address === null) return failed('not_on_whatsapp', 'not_on_whatsapp')
      await this.#type(connection, address, message.text)
      if (this.#parts.stop.aborted || this.#clock.now() >= deadline) return failed('retryable', 'too_late')
      progress.onTheWire = true
      const readable = await connection.send(address, message.whatsappId, message.text)
      if (!readable) return failed('retryable', 'no_recipient_device')
      return await this.#acknowledged(connection, answer, deadline)
    } catch (error) {
      this.#parts.log.warn('send_failed', { messageId: message.messageId, ...whatFailed(error) })
      return whenFailed(progress, 'send_failed')
    } finally {
      this.#acks.giveUp(message.whatsappId)
    }
  }

  /** One to three seconds, longer for longer texts, never twice the same. */
  async #type(connection: Connection, address: string, text: string): Promise<void> {
    const ms = Math.min(3_000, Math.max(1_000, text.length * 25) * (1 + this.#parts.random() / 2))
    await connection.typing(address, true)
    await this.#clock.pause(ms, this.#parts.stop)
    await connection.typing(address, false)
  }

  async #acknowledged(connection: Connection, answer: Promise<Answer>, deadline: number): Promise<Outcome> {
    const left = Math.min(ACK_MS, deadline - this.#clock.now())
    const said = await this.#within(left, answer, async () => 'late' as const)
    if (said === 'late') return failed('unconfirmed', 'no_server_ack')
    if (said === 'connection_lost') return failed('unconfirmed', 'connection_lost')
    return outcomeOf(said.error, said.error === '463' ? await this.#restrictedUntil(connection) : null)
  }

  /** If WhatsApp does not say, the server has its own rule for that. */
  #restrictedUntil(connection: Connection): Promise<number | null> {
    const asked = connection.restrictedUntil().catch(() => null)
    return this.#within(TIMELOCK_MS, asked, async () => null)
  }

  async #within<Value>(ms: number, work: Promise<Value>, otherwise: () => Promise<Value>): Promise<Value> {
    const inTime = new AbortController()
    try {
      return await Promise.race([work, this.#clock.pause(Math.max(0, ms), inTime.signal).then(otherwise)])
    } finally {
      inTime.abort()
    }
  }
}

const whenFailed = ({ onTheWire }: Progress, error: string): Outcome =>
  failed(onTheWire ? 'unconfirmed' : 'retryable', error)
