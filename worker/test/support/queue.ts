/**
 * The server's queue, in small: hands over one message at a time, each attempt under the same id, until it is settled.
 * A process that died loses its lease at once, since the test knows what the real server has to wait for.
 */
import assert from 'node:assert/strict'
import type { Stage } from './stage.js'
import type { Reply, Told } from './switchboard.js'

export interface Order {
  readonly messageId: string
  readonly whatsappId: string
  readonly to: string
  readonly text: string
  attempt: number
}

const LEASE_MS = 60_000
/** After these the server tries again. */
const PASSING = ['retryable', 'unconfirmed']

export class Queue {
  readonly #stage: Stage
  readonly #waiting: Order[] = []
  #held: Order | null = null
  #added = 0
  settled = 0
  attempts = 0

  constructor(stage: Stage) {
    this.#stage = stage
    stage.switchboard.way = this.answer
  }

  get isHeld(): boolean {
    return this.#held !== null
  }

  get isEmpty(): boolean {
    return this.#held === null && this.#waiting.length === 0
  }

  add(to: string, text: string): Order {
    this.#added += 1
    const number = this.#added.toString(16).toUpperCase().padStart(18, '0')
    const order = { messageId: number.toLowerCase(), whatsappId: `3EB0${number}`, to, text, attempt: 0 }
    this.#waiting.push(order)
    if (this.#held === null && this.#stage.switchboard.isPolled) {
      const message = this.#take()
      if (message) this.#stage.switchboard.offer({ message })
    }
    return order
  }

  /** How the server answers; unless the test has a way of its own. */
  readonly answer = ({ call, body }: Told): Reply | undefined => {
    if (call === 'claim') {
      const message = this.#held === null ? this.#take() : null
      return message ? { status: 200, body: { message } } : undefined
    }
    if (call === 'ack') return { status: 200, body: { settled: this.#settle(body), status: 'sent' } }
    if (call === 'nack') return { status: 200, body: { settled: this.#refuse(body), status: 'queued' } }
    return undefined
  }

  /** The process that may hold a message is no more. */
  async workerDied(): Promise<void> {
    await this.#stage.until(() => !this.#stage.switchboard.isPolled, 'its connection is gone')
    this.#giveBack()
  }

  #take(): Record<string, unknown> | null {
    const order = this.#waiting.shift()
    if (!order) return null
    order.attempt += 1
    this.attempts += 1
    this.#held = order
    return { ...order, leaseUntil: Date.now() + LEASE_MS }
  }

  /** A late ack of an older attempt settles, too: WhatsApp has the message. */
  #settle({ messageId }: Record<string, unknown>): boolean {
    const waits = this.#waiting.findIndex(order => order.messageId === messageId)
    if (waits >= 0) this.#waiting.splice(waits, 1)
    else if (this.#held?.messageId === messageId) this.#held = null
    else return false
    this.settled += 1
    return true
  }

  #refuse({ messageId, attempt, class: kind }: Record<string, unknown>): boolean {
    if (this.#held?.messageId !== messageId || this.#held?.attempt !== attempt) return false
    assert.ok(PASSING.includes(String(kind)), `a message was refused as ${kind}`)
    this.#giveBack()
    return true
  }

  #giveBack(): void {
    if (this.#held) this.#waiting.unshift(this.#held)
    this.#held = null
  }
}
