/**
 * Why a connection ended, and what follows. Pure. The shape of the error is looked at before its code, because the same
 * code means different things: 500 alone may be a proxy, a certificate, or a server that is ill.
 */

/** What WhatsApp's library hands over when a connection is over. */
export interface EndingError {
  readonly message: string
  readonly code: number | null
  /** The underlying error, a stanza's attributes, or nothing. */
  readonly data: unknown
}

export type Ending =
  /** Connect again: at once, or after a growing pause. */
  | { readonly kind: 'restart'; readonly reason: 'restart_required' }
  | { readonly kind: 'network'; readonly reason: string }
  | { readonly kind: 'qr_expired'; readonly reason: 'qr_expired' }
  | { readonly kind: 'proxy'; readonly code: string; readonly detail: string }
  /** Do not connect again by yourself. */
  | { readonly kind: 'replaced'; readonly reason: 'replaced' }
  | { readonly kind: 'logged_out'; readonly reason: 'logged_out' }
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'passkey'; readonly reason: 'passkey_required' }

const FINAL: readonly Ending['kind'][] = ['replaced', 'logged_out', 'refused', 'passkey']

export const isFinal = (ending: Ending): boolean => FINAL.includes(ending.kind)

export function classify(error: EndingError): Ending {
  return fromProxy(error) ?? fromTls(error) ?? fromWhatsApp(error) ?? fromNetwork(error)
}

// --- the proxy, and what may sit in it ---

/** In the order in which they are asked; the words of the library `socks`. */
const PROXY_TROUBLES: readonly (readonly [RegExp, string, string])[] = [
  [/authentication failed/i, 'auth_failed', 'the proxy does not accept the user name and password'],
  [/no accepted authentication/i, 'auth_refused', 'the proxy does not offer a way to sign in that we know'],
  [/timed out/i, 'timeout', 'the proxy did not answer in time'],
  [/ECONNREFUSED/, 'refused', 'nothing listens at the address of the proxy'],
  [/ENOTFOUND|EAI_AGAIN/, 'unknown_host', "the proxy's host name is not known"],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, 'unreachable', 'the proxy could not be reached'],
  [/rejected connection/i, 'connect_refused', 'the proxy could not connect to WhatsApp'],
  [/invalid socks/i, 'not_socks', 'what listens there is not a SOCKS5 proxy'],
  [/socket closed|ECONNRESET|EPIPE/i, 'closed', 'the proxy closed the connection']
]

function fromProxy({ data }: EndingError): Ending | null {
  if (!isProxyError(data)) return null
  const said = String((data as Error).message)
  const [, code, detail] = PROXY_TROUBLES.find(([words]) => words.test(said)) ?? [null, 'failed', 'the proxy failed']
  return { kind: 'proxy', code, detail }
}

function isProxyError(data: unknown): data is Error {
  if (!(data instanceof Error)) return false
  const options = (data as { options?: { proxy?: unknown } }).options
  return (
    data.name === 'SocksClientError' || data.constructor.name === 'SocksClientError' || options?.proxy !== undefined
  )
}

const NOT_TRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|ERR_TLS|ERR_SSL/

/** Somebody answers in WhatsApp's name who is not WhatsApp: most likely the proxy itself, so it is not used again. */
function fromTls({ data }: EndingError): Ending | null {
  const code = (data as { code?: unknown } | null | undefined)?.code
  if (typeof code !== 'string' || !NOT_TRUSTED.test(code)) return null
  const detail =
    "the certificate shown in WhatsApp's name is not trusted: something on the way, probably the proxy, reads along"
  return { kind: 'proxy', code: 'tls_not_trusted', detail }
}

// --- WhatsApp ---

function fromWhatsApp({ code, message, data }: EndingError): Ending | null {
  const conflict = conflictOf(data)
  if (conflict === 'replaced' || code === 440) return { kind: 'replaced', reason: 'replaced' }
  if (conflict === 'device_removed' || code === 401) return { kind: 'logged_out', reason: 'logged_out' }
  if (/QR refs/i.test(message)) return { kind: 'qr_expired', reason: 'qr_expired' }
  if (code === 515) return { kind: 'restart', reason: 'restart_required' }
  if (/Connection Failure/i.test(message)) return fromFailure(code)
  if (code === 403) return { kind: 'refused', code: 'status_403' }
  return null
}

function conflictOf(data: unknown): string | null {
  const node = data as { tag?: unknown; attrs?: { type?: unknown } } | null | undefined
  return node?.tag === 'conflict' && typeof node.attrs?.type === 'string' ? node.attrs.type : null
}

/** A `<failure>` at login. Those that mend themselves are tried again; the others would only make it worse. */
function fromFailure(code: number | null): Ending {
  if (code === null || code >= 500 || code === 408 || code === 429)
    return { kind: 'network', reason: `failure_${code}` }
  if (code === 405) return { kind: 'refused', code: 'client_outdated' }
  return { kind: 'refused', code: `status_${code}` }
}

// --- the network in between ---

function fromNetwork({ code, message }: EndingError): Ending {
  const http = /^HTTP (\d{3})/.exec(message)?.[1]
  if (http !== undefined) return { kind: 'network', reason: `http_${http}` }
  if (/Stream Errored/i.test(message)) return { kind: 'network', reason: `stream_error_${code}` }
  if (/Connection was lost/i.test(message)) return { kind: 'network', reason: 'connection_lost' }
  return { kind: 'network', reason: code === null ? 'connection_closed' : `connection_closed_${code}` }
}
