/** What can be wrong with a proxy, from the first connection to the last byte. */
import { Refused } from './types.js'

export const PROXY_MODES = [
  'none', // works
  'refuse', // nobody listens on the port
  'close', // closes at accept
  'hang', // accepts and says nothing
  'garbage', // answers, but not with SOCKS
  'no_method', // accepts no way to authenticate
  'wrong_password', // refuses every password
  'hang_connect', // takes the request and never answers it
  'reply', // answers the request with `reply`
  'slow', // delays the connect, and each piece of data, by `ms`
  'freeze', // connections that exist now stall until 'none'; new ones work
  'drop' // cuts connections that exist now; does not stay
] as const

export type ProxyMode = (typeof PROXY_MODES)[number]

export interface ProxyFault {
  readonly mode: ProxyMode
  /** For `reply`: 1 to 8. */
  readonly reply?: number
  /** For `slow`. */
  readonly ms?: number
}

export function checkFault({ mode, reply, ms }: ProxyFault): void {
  if (!PROXY_MODES.includes(mode)) throw new Refused(`mode must be one of ${PROXY_MODES.join(', ')}`)
  if (mode === 'reply' && !(Number.isInteger(reply) && Number(reply) >= 1 && Number(reply) <= 8)) {
    throw new Refused('mode reply needs reply, a whole number from 1 to 8')
  }
  if (mode === 'slow' && !(Number(ms) > 0 && Number(ms) <= 600_000)) {
    throw new Refused('mode slow needs ms, above 0 and up to 600000')
  }
}
