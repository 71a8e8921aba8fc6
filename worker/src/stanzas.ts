/** What WhatsApp's stanzas say, in our words. Pure: reads attributes, knows no library. */
import { createHash } from 'node:crypto'
import type { Phone } from './types.js'

/** A stanza as it comes over the wire. */
export interface Stanza {
  readonly tag: string
  readonly attrs: Readonly<Record<string, string | undefined>>
  readonly content?: unknown
}

const PERSON = /^(\d+)(?:[:_]\d+)*@(s\.whatsapp\.net|c\.us|lid|hosted|hosted\.lid)$/
const OURS = /^3EB0[0-9A-F]{18}$/
/** Whoever names more in one receipt does not mean ours. */
const MOST_IDS = 1_000
/** As the server takes them. The sender's program chooses ids; they may be anything. */
const PLAIN_ID = /^[A-Za-z0-9._-]{1,128}$/

/** The number in an address, if the address is one of a person and names a number rather than a LID. */
export function phoneOf(address: string | undefined): Phone | null {
  const [, user, server] = PERSON.exec(address ?? '') ?? []
  return user !== undefined && server !== undefined && !server.endsWith('lid') ? user : null
}

/** The user part, be it a number or a LID. */
export const userOf = (address: string | undefined): string | null => PERSON.exec(address ?? '')?.[1] ?? null

export const isPerson = (address: string): boolean => PERSON.test(address)

export const children = (stanza: Stanza): Stanza[] =>
  Array.isArray(stanza.content) ? (stanza.content as Stanza[]) : []

/** When WhatsApp says it happened, ms. Nonsense and the future are `now`. */
export function momentOf(stanza: Stanza, now: number): number {
  const said = Number(stanza.attrs['t']) * 1000
  return Number.isSafeInteger(said) && said > 1_500_000_000_000 && said <= now ? said : now
}

export interface Receipt {
  readonly type: 'MESSAGE_DELIVERED' | 'MESSAGE_READ'
  readonly whatsappId: string
  readonly timestamp: number
}

/**
 * Of messages that Switchboard sent, from the people they went to. Receipts of our own other devices say nothing about
 * the recipient, and those of what the owner wrote on the phone are not our business.
 */
export function receiptsIn(stanza: Stanza, me: readonly (string | null)[], now: number): Receipt[] {
  const { from, type, recipient } = stanza.attrs
  if (stanza.tag !== 'receipt' || from === undefined || recipient !== undefined) return []
  if (!isPerson(from) || me.includes(userOf(from))) return []
  const read = type === 'read' || type === 'played'
  if (!read && type !== undefined && type !== 'delivery' && type !== 'inactive') return []
  const listed = children(stanza).flatMap(child => (child.tag === 'list' ? children(child) : []))
  const ids = [stanza.attrs['id'], ...listed.map(item => item.attrs['id'])].slice(0, MOST_IDS)
  const timestamp = momentOf(stanza, now)
  return ids
    .filter((id): id is string => id !== undefined && OURS.test(id))
    .map(whatsappId => ({ type: read ? 'MESSAGE_READ' : 'MESSAGE_DELIVERED', whatsappId, timestamp }))
}

/** A message that a person wrote to this account, before it is decrypted. */
export interface Letter {
  readonly id: string
  /** As WhatsApp gives it: under a number or a LID. */
  readonly from: string
  /** The number, where WhatsApp says it along with a LID. */
  readonly phone: Phone | null
  readonly timestamp: number
  readonly backfilled: boolean
}

/** Not those of groups, of our own phone, or between our own devices. */
export function letterIn(stanza: Stanza, me: readonly (string | null)[], now: number): Letter | null {
  const { id: given, from, category, recipient, offline } = stanza.attrs
  if (stanza.tag !== 'message' || given === undefined || from === undefined) return null
  if (!isPerson(from) || category === 'peer' || recipient !== undefined || me.includes(userOf(from))) return null
  const phone = phoneOf(from) ?? phoneOf(stanza.attrs['sender_pn'] ?? stanza.attrs['participant_pn'])
  const id = PLAIN_ID.test(given) ? given : createHash('sha256').update(given).digest('hex')
  return { id, from, phone, timestamp: momentOf(stanza, now), backfilled: offline !== undefined }
}

/** WhatsApp wants a passkey before it links a device, which no program can give. */
export const asksForPasskey = (stanza: Stanza): boolean =>
  stanza.tag === 'notification' && /^(passkey_prologue_request|crsc_continuation)$/.test(stanza.attrs['type'] ?? '')
