/** The simulator's state and messages as lines for a person. Programs use --json. */
import type { ProxyView } from './socks5.js'
import type { AccountView, FaultView, PendingView, ShownMessage, WireMessage } from './types.js'

export interface StateView {
  readonly accounts: readonly AccountView[]
  readonly pending: readonly PendingView[]
  readonly faults: readonly FaultView[]
  readonly proxies: readonly (ProxyView & { readonly n: number })[]
}

export function describeState({ accounts, pending, faults, proxies }: StateView): string {
  return [
    `accounts: ${accounts.length}`,
    ...accounts.map(describeAccount),
    `pending links: ${pending.length}`,
    ...pending.map(({ kind, phone }) => `  ${kind}${phone === null ? '' : ` for ${phone}`}`),
    `faults: ${faults.length}`,
    ...faults.map(({ id, kind, phone, times, hits }) => {
      return `  ${id} ${kind} for ${phone ?? 'anyone'}, happened ${hits}${times === undefined ? '' : ` of ${times}`} times`
    }),
    `proxies: ${proxies.length}`,
    ...proxies.map(({ n, port, user, mode, connections, asked }) => {
      return `  ${n} port ${port} user ${user ?? '-'} mode ${mode}, ${connections} open, asked ${asked.length}`
    })
  ].join('\n')
}

export function describeMessage({ id, from, to, text, at, stanzas, delivered, read }: ShownMessage): string {
  const status = read ? 'read' : delivered ? 'delivered' : 'sent'
  const again = stanzas > 1 ? ` (came ${stanzas} times)` : ''
  return `${time(at)} ${from} -> ${to} ${status.padEnd(9)} ${id}${again} ${oneLine(text)}`
}

export function describeWire({ id, from, to, text, at, devices, answer }: WireMessage): string {
  const words = text === null ? '(nobody could read it)' : oneLine(text)
  return `${time(at)} ${from} -> ${to} answered ${answer}, for ${devices.length} devices ${id} ${words}`
}

function describeAccount({ phone, name, linked, online, banned, logins, waiting }: AccountView): string {
  const states = [linked ? 'linked' : 'not linked', online ? 'online' : 'offline', ...(banned ? ['BLOCKED'] : [])]
  return `  ${phone} ${JSON.stringify(name)} ${states.join(', ')}, ${logins} logins, ${waiting} waiting`
}

function time(at: number): string {
  return new Date(at).toISOString().slice(11, 23)
}

/** A message must not be able to move the cursor, colour the terminal or look like two. */
function oneLine(text: string): string {
  return JSON.stringify(text)
}
