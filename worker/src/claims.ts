/** What a claim is answered with, checked before anything is done with it. */

import { Unavailable } from './server.js'
import type { Order, OutgoingMessage } from './types.js'

export interface Claimed {
  readonly message: OutgoingMessage | null
  readonly order: Order | null
}

export const NOTHING: Claimed = { message: null, order: null }

/** Whatever an object may hold of what we know by name. */
type Fields = {
  readonly [name in 'message' | 'order' | keyof OutgoingMessage | 'id' | 'type' | 'phone']?: unknown
}

/** An answer that is none is treated as no answer: the lease of whatever it meant runs out. */
export function readClaim(answer: unknown): Claimed {
  if (!isFields(answer) || !('message' in answer)) throw new Unavailable('answer_not_a_claim')
  return {
    message: answer.message === null ? null : messageOf(answer.message),
    order: answer.order === undefined ? null : orderOf(answer.order)
  }
}

function messageOf(value: unknown): OutgoingMessage {
  if (!isFields(value)) throw new Unavailable('claim_without_message')
  return {
    messageId: text(value.messageId, /^[0-9a-f]{18}$/),
    whatsappId: text(value.whatsappId, /^3EB0[0-9A-F]{18}$/),
    to: text(value.to, PHONE),
    text: text(value.text, /./s),
    attempt: count(value.attempt, 1, Number.MAX_SAFE_INTEGER),
    leaseUntil: count(value.leaseUntil, 1e12, 1e14 - 1)
  }
}

function orderOf(value: unknown): Order {
  if (!isFields(value)) throw new Unavailable('claim_with_bad_order')
  const id = count(value.id, 1, Number.MAX_SAFE_INTEGER)
  switch (value.type) {
    case 'logout':
      return { id, type: 'logout' }
    case 'pair':
      return { id, type: 'pair', phone: text(value.phone, PHONE) }
    default:
      throw new Unavailable('claim_with_unknown_order')
  }
}

const PHONE = /^[1-9][0-9]{6,14}$/

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function text(value: unknown, shape: RegExp): string {
  if (typeof value !== 'string' || !shape.test(value)) throw new Unavailable('claim_with_bad_field')
  return value
}

function count(value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw new Unavailable('claim_with_bad_field')
  }
  return value
}
