/** How a proxy is written down. The same rules as on the server's side; reaches no proxy. */

import { isIPv6 } from 'node:net'

export interface ProxyAddress {
  /** An IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number
  readonly user?: string
  readonly password?: string
  /** With the credentials, percent-encoded: for the SOCKS client, never for showing. */
  readonly url: string
}

/** Says in one sentence what is wrong with a proxy's URL. Repeats nothing of it: errors end up in logs. */
export class ProxyUrlError extends Error {}

const LONGEST_CREDENTIAL = 255 // in bytes: RFC 1929 counts them in one byte
const SHAPE = 'write socks5h://user:password@host:port'
const LABEL = '(?!-)[A-Za-z0-9_-]{1,63}(?<!-)'
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(\\.${LABEL})*\\.?$`)
const REFUSED_SCHEMES: Readonly<Record<string, string>> = {
  socks5: 'socks5:// is refused: names would be resolved outside the proxy and leak past it; write socks5h://',
  http: 'http:// is refused: only SOCKS5 carries all that a worker sends; write socks5h://',
  https: 'https:// is refused: only SOCKS5 carries all that a worker sends; write socks5h://'
}

/** Not `new URL`: it drops line breaks silently, forgives much, and its errors repeat what they were given. */
export function parseProxyUrl(text: string): ProxyAddress {
  if (/[\s\p{C}\p{Z}]/u.test(text)) {
    throw new ProxyUrlError('the URL holds white space or an invisible character; remove it, or write it as %20')
  }
  const [, scheme = '', rest = ''] = /^(.*?):\/\/(.*)$/.exec(text) ?? []
  checkScheme(scheme.toLowerCase())
  if (/[/?#]/.test(rest)) {
    throw new ProxyUrlError('nothing may follow the port; in a user or password write / as %2F, ? as %3F, # as %23')
  }
  const at = rest.lastIndexOf('@')
  const { host, port } = hostAndPort(rest.slice(at + 1))
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  if (at < 0) return { host, port, url: `socks5h://${address}` }
  const { user, password } = credentials(rest.slice(0, at))
  const encoded = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
  return { host, port, user, password, url: `socks5h://${encoded}@${address}` }
}

function checkScheme(scheme: string): void {
  if (scheme === 'socks5h') return
  if (!scheme) throw new ProxyUrlError(`the URL does not say what kind of proxy it is; ${SHAPE}`)
  throw new ProxyUrlError(REFUSED_SCHEMES[scheme] ?? `this kind of proxy is not known; ${SHAPE}`)
}

function credentials(text: string): { user: string; password: string } {
  const colon = text.indexOf(':')
  const user = colon < 0 ? text : text.slice(0, colon)
  if (!user) throw new ProxyUrlError(`there is no user in front of the ${colon < 0 ? '@' : 'password'}; ${SHAPE}`)
  return { user: decoded(user, 'user'), password: colon < 0 ? '' : decoded(text.slice(colon + 1), 'password') }
}

function decoded(text: string, name: string): string {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) {
    throw new ProxyUrlError(`a % in the ${name} is not followed by two hexadecimal digits; write % itself as %25`)
  }
  let plain: string
  try {
    plain = decodeURIComponent(text)
  } catch {
    throw new ProxyUrlError(`the ${name} is no UTF-8; percent-encode its UTF-8 bytes`)
  }
  if (Buffer.byteLength(plain) > LONGEST_CREDENTIAL) {
    throw new ProxyUrlError(`the ${name} is longer than ${LONGEST_CREDENTIAL} bytes, which SOCKS5 cannot carry`)
  }
  if (/\p{C}/u.test(plain)) throw new ProxyUrlError(`the ${name} holds a control or invisible character`)
  return plain
}

function hostAndPort(text: string): { host: string; port: number } {
  if (text.startsWith('[')) {
    const [, inside = '', after = ''] = /^\[([^\]]*)\]:(.*)$/.exec(text) ?? []
    if (!isIPv6(inside) || inside.includes('%')) {
      throw new ProxyUrlError('the brackets do not hold an IPv6 address with a port after it, like [2001:db8::7]:1080')
    }
    return { host: inside, port: portOf(after) }
  }
  const [host = '', port, ...more] = text.split(':')
  if (!host) throw new ProxyUrlError(`the host is missing; ${SHAPE}`)
  if (more.length) throw new ProxyUrlError(`there are too many colons; ${SHAPE}, and an IPv6 address in brackets`)
  if (!HOST_NAME.test(host)) {
    throw new ProxyUrlError('the host is neither a name nor an address; write a name outside ASCII in its xn-- form')
  }
  if (port === undefined) throw new ProxyUrlError(`the port is missing, and none is assumed; ${SHAPE}`)
  return { host: host.toLowerCase(), port: portOf(port) }
}

function portOf(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new ProxyUrlError('the port is not a number from 1 to 65535')
  return port
}
