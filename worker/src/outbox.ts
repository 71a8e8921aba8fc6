/**
 * The claim loop: asks the server for the next message, has the link send it, reports how that ended, asks again.
 * One message at a time; pace and retries are the server's business. Orders are carried out beside the messages.
 */

import { type Claimed, NOTHING, readClaim } from './claims.js'
import { type Clock, firstAbort, unlessAborted } from './clock.js'
import type { Journal } from './journal.js'
import { type Log, whatFailed } from './log.js'
import { Patience } from './patience.js'
import { Forgotten, Rejected, type Server, Unavailable } from './server.js'
import type { Teller } from './teller.js'
import type { FailureClass, Link, Order, Outcome, OutgoingMessage } from './types.js'

const WAIT_MS = 25_000
const ANSWER_MS = 10_000
/** Below this an answer with nothing in it was not waited for; asking on at once would be a storm. */
const HASTY_MS = 1_000
const LINK_WAIT_MS = 10_000
const LINK_LOOK_MS = 200
/** A send must be over this long before its lease, so that its report arrives within it. */
const REPORT_MS = 5_000
/** Less than this is left of the lease: too little to send. */
const LEAST_LEASE_MS = 10_000
const REASON = /^[a-z0-9][a-z0-9_.:-]{0,63}$/

export interface OutboxParts {
  readonly server: Server
  readonly journal: Journal
  readonly teller: Teller
  readonly link: Link
  readonly clock: Clock
  readonly log: Log
  /** How long a send under way may go on once the worker is to stop. */
  readonly graceMs?: number
}

export class Outbox {
  readonly #parts: OutboxParts
  readonly #patience: Patience
  #takenOn: number | null = null
  #reported: { readonly message: OutgoingMessage; readonly settled: Promise<void> } | null = null

  constructor(parts: OutboxParts) {
    this.#parts = parts
    this.#patience = new Patience('claim', parts)
  }

  /** Until `stop` aborts; rejects with Removed when the server knows the session no more. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const { message, order } = await this.#claim(stop)
      if (order) this.#takeOn(order)
      if (message) await this.#handle(message, stop)
    }
  }

  async #claim(stop: AbortSignal): Promise<Claimed> {
    const { server, clock, log } = this.#parts
    const asked = clock.now()
    const body = {
      instance: server.instance,
      waitMs: WAIT_MS,
      ...(this.#takenOn === null ? {} : { order: this.#takenOn })
    }
    try {
      const options = { timeoutMs: WAIT_MS + ANSWER_MS, signal: stop }
      const claimed = readClaim(await server.call(server.outbox('claim'), body, options))
      const hasty = !claimed.message && !claimed.order && clock.now() - asked < HASTY_MS
      if (hasty) await this.#patience.pause(stop)
      else this.#patience.rewarded()
      return claimed
    } catch (error) {
      if (error instanceof Unavailable) {
        if (!stop.aborted) await this.#patience.after(error, stop)
      } else if (error instanceof Rejected || error instanceof Forgotten) {
        log.error('claim_refused', { code: error.code })
        await this.#patience.pause(stop)
      } else {
        throw error
      }
      return NOTHING
    }
  }

  async #handle(message: OutgoingMessage, stop: AbortSignal): Promise<void> {
    const { clock, log, teller, journal } = this.#parts
    if (this.#reported && sameAttempt(this.#reported.message, message)) {
      // Its report waits, or was dropped: the server's lease decides. A second send would be a second attempt.
      log.warn('message_given_again', naming(message))
      await unlessAborted(this.#reported.settled, stop)
      return this.#patience.pause(stop)
    }
    const outcome = await this.#attempt(message, stop)
    if (!outcome) return log.warn('send_left_unreported', naming(message))
    const { messageId, attempt } = message
    const body = { messageId, attempt, timestamp: clock.now() }
    journal.add(outcome.sent ? { kind: 'ack', body } : { kind: 'nack', body: { ...body, ...failureOf(outcome) } })
    this.#reported = { message, settled: teller.settled(messageId, attempt) }
    await unlessAborted(this.#reported.settled, stop)
  }

  /** Null if it is not known how it ended, and is not going to be. */
  async #attempt(message: OutgoingMessage, stop: AbortSignal): Promise<Outcome | null> {
    const { clock, teller, link } = this.#parts
    const latest = message.leaseUntil - LEAST_LEASE_MS
    if (!(await this.#caughtUp(latest, stop))) return failure('retryable', 'reports_waiting')
    if (teller.leftAckOf(message.messageId)) return { sent: true }
    const patientUntil = Math.min(clock.now() + LINK_WAIT_MS, latest)
    while (!link.isOpen && clock.now() < patientUntil && !stop.aborted) await clock.pause(LINK_LOOK_MS, stop)
    if (stop.aborted) return failure('retryable', 'stopping')
    if (!link.isOpen) return failure('retryable', 'not_connected')
    if (clock.now() > latest) return failure('retryable', 'lease_too_short')
    return this.#send(message, stop)
  }

  /** What an earlier process left to tell may be that WhatsApp has this very message. */
  async #caughtUp(latest: number, stop: AbortSignal): Promise<boolean> {
    const { clock, teller } = this.#parts
    const done = new AbortController()
    const late = clock.pause(Math.max(0, latest - clock.now()), done.signal)
    const told = teller.caughtUp().then(() => true)
    const inTime = await Promise.race([told, late.then(() => false), firstAbort(stop, done.signal).then(() => false)])
    done.abort()
    return inTime
  }

  async #send(message: OutgoingMessage, stop: AbortSignal): Promise<Outcome | null> {
    const done = new AbortController()
    const sending = this.#outcomeOf(message)
    try {
      return await Promise.race([sending, this.#graceOver(stop, done.signal)])
    } finally {
      done.abort()
    }
  }

  async #outcomeOf(message: OutgoingMessage): Promise<Outcome> {
    const { link, log } = this.#parts
    try {
      return await link.send(message, message.leaseUntil - REPORT_MS)
    } catch (error) {
      // A link never throws; if it does, WhatsApp may have the message all the same.
      log.error('send_threw', { ...naming(message), ...whatFailed(error) })
      return failure('unconfirmed', 'send_threw')
    }
  }

  async #graceOver(stop: AbortSignal, done: AbortSignal): Promise<null> {
    await firstAbort(stop, done)
    if (!done.aborted) await this.#parts.clock.pause(this.#parts.graceMs ?? 5_000, done)
    return null
  }

  /** Noted before it is carried out: one that kills the process must not be met again by this one. */
  #takeOn(order: Order): void {
    if (order.id === this.#takenOn) return
    this.#takenOn = order.id
    const { link, log } = this.#parts
    log.info('order_taken_on', { order: order.id, type: order.type })
    const obeyed = order.type === 'logout' ? link.logOut() : link.pair(order.phone)
    obeyed.catch((error: unknown) => log.error('order_failed', { order: order.id, ...whatFailed(error) }))
  }
}

function sameAttempt(one: OutgoingMessage, other: OutgoingMessage): boolean {
  return one.messageId === other.messageId && one.attempt === other.attempt
}

function failure(kind: FailureClass, error: string): Outcome {
  return { sent: false, class: kind, error, until: null }
}

/** As the protocol wants it: a report that the server refuses would be lost. */
function failureOf(outcome: Outcome & { sent: false }): Record<string, unknown> {
  return {
    class: outcome.class,
    error: REASON.test(outcome.error) ? outcome.error : 'unnamed',
    until: outcome.class === 'restricted' && isMoment(outcome.until) ? outcome.until : null
  }
}

function isMoment(ms: number | null): boolean {
  return ms !== null && Number.isInteger(ms) && ms >= 1e12 && ms < 1e14
}

function naming({ messageId, attempt }: OutgoingMessage): { messageId: string; attempt: number } {
  return { messageId, attempt }
}
