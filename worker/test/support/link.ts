/** A link to WhatsApp whose every answer the test decides. The real one has tests of its own. */

import type { Link, Outcome, OutgoingMessage } from '../../src/types.js'

export class TestLink implements Link {
  isOpen = true
  lastInboundAt: number | null = null
  readonly sent: { readonly message: OutgoingMessage; readonly deadline: number }[] = []
  readonly orders: string[] = []
  /** How many sends were ever under way at the same time. */
  mostAtOnce = 0
  presences = 0
  /** How a send ends; without it, WhatsApp takes everything at once. */
  outcome: (message: OutgoingMessage) => Promise<Outcome> = async () => ({ sent: true })
  /** How an order or a presence ends. */
  obedience: () => Promise<void> = async () => undefined
  #underWay = 0

  async send(message: OutgoingMessage, deadline: number): Promise<Outcome> {
    this.sent.push({ message, deadline })
    this.#underWay += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#underWay)
    try {
      return await this.outcome(message)
    } finally {
      this.#underWay -= 1
    }
  }

  pair(phone: string): Promise<void> {
    this.orders.push(`pair ${phone}`)
    return this.obedience()
  }

  logOut(): Promise<void> {
    this.orders.push('logout')
    return this.obedience()
  }

  beHere(): Promise<void> {
    this.presences += 1
    return this.obedience()
  }

  async close(): Promise<void> {}
}
