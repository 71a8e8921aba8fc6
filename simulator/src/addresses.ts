/** Phone numbers, LIDs and device addresses, and the ways between them. Holds no state. */

import { jidDecode, jidEncode } from './codec.js'
import { type Phone, Refused } from './types.js'

/** How an address is written: by phone number or by LID. */
export type Addressing = 'pn' | 'lid'

/** One device of somebody: 0 is the phone itself, the others are linked companions. */
export interface DeviceAddress {
  readonly phone: Phone
  readonly device: number
}

// A multiplication modulo 10^15 is a bijection as long as the factor has an inverse, so every number has one LID
// that nobody else has, it needs no table, and it does not look like the number.
const SPACE = 10n ** 15n
const FACTOR = 618_033_988_749_897n
const INVERSE = inverseOf(FACTOR, SPACE)
const PREFIX = '2'

export function lidOf(phone: Phone): string {
  return PREFIX + ((BigInt(phone) * FACTOR) % SPACE).toString().padStart(15, '0')
}

export function phoneOfLid(lid: string): Phone {
  return ((BigInt(lid.slice(PREFIX.length)) * INVERSE) % SPACE).toString()
}

/** The digits of a number as people type it, or a refusal. */
export function phoneOf(text: string): Phone {
  const digits = text.replace(/^\+/, '')
  if (!/^[1-9]\d{4,14}$/.test(digits)) {
    throw new Refused(`Not a phone number: give 5 to 15 digits with the country code, without spaces`)
  }
  return digits
}

export function jidOf(address: DeviceAddress, by: Addressing): string {
  const device = address.device || undefined
  return by === 'lid'
    ? jidEncode(lidOf(address.phone), 'lid', device)
    : jidEncode(address.phone, 's.whatsapp.net', device)
}

export function addressingOf(jid: string): Addressing {
  return jid.endsWith('@lid') ? 'lid' : 'pn'
}

/**
 * The attributes that say where a message comes from. Each address is given in both ways; a copy for the sender's own
 * devices names the other side of the chat instead, since clients take the second address for that of the chat.
 */
export function originOf(sender: DeviceAddress, by: Addressing, ownCopyTo?: Phone): Record<string, string> {
  const other = by === 'lid' ? 'pn' : 'lid'
  const from = jidOf(sender, by)
  if (ownCopyTo === undefined) return { from, [`sender_${other}`]: jidOf({ phone: sender.phone, device: 0 }, other) }
  const chat = { phone: ownCopyTo, device: 0 }
  return { from, recipient: jidOf(chat, by), [`peer_recipient_${other}`]: jidOf(chat, other) }
}

/** Whose device a jid names; null for groups, broadcasts and the server. */
export function addressOf(jid: string | undefined): DeviceAddress | null {
  const decoded = jidDecode(jid)
  if (!decoded || !/^\d+$/.test(decoded.user)) return null
  const device = decoded.device ?? 0
  if (decoded.server === 'lid') return { phone: phoneOfLid(decoded.user), device }
  if (decoded.server === 's.whatsapp.net' || decoded.server === 'c.us') return { phone: decoded.user, device }
  return null
}

/** The name of a device in tables and sessions. */
export function keyOf(address: DeviceAddress): string {
  return `${address.phone}:${address.device}`
}

function inverseOf(factor: bigint, modulus: bigint): bigint {
  let [r, next] = [modulus, factor]
  let [t, nextT] = [0n, 1n]
  while (next > 0n) {
    const quotient = r / next
    ;[r, next] = [next, r - quotient * next]
    ;[t, nextT] = [nextT, t - quotient * nextT]
  }
  if (r !== 1n) throw new Error('The factor of the LIDs has no inverse')
  return ((t % modulus) + modulus) % modulus
}
