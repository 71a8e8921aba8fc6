/** The sockets that a process has open right now, as Linux tells them. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface OpenSocket {
  /** tcp, tcp6, udp, udp6, unix; or unknown for any other kind. */
  readonly kind: string
  readonly listens: boolean
  /** `address:port` of the other end. */
  readonly remote: string
}

const KINDS = ['tcp', 'tcp6', 'udp', 'udp6'] as const
const LISTEN = '0A'
const LOOK_MS = 20

/** By the number that Linux gives them. */
function socketsOf(pid: number): Map<string, OpenSocket> {
  const own = inodes(pid)
  const all = new Map<string, OpenSocket>()
  for (const kind of KINDS) {
    for (const [, , remote = '', state = '', , , , , , inode = ''] of table(pid, kind)) {
      all.set(inode, { kind, listens: state === LISTEN, remote: address(remote) })
    }
  }
  for (const line of table(pid, 'unix')) all.set(line[6] ?? '', { kind: 'unix', listens: false, remote: '' })
  const unknown = { kind: 'unknown', listens: false, remote: '' }
  return new Map(own.map(inode => [inode, all.get(inode) ?? unknown]))
}

/**
 * Everything the process has open, from now until `stop`. What comes and goes between two looks stays unseen, and what
 * is unknown at a single look was being opened or closed just then.
 */
export function watchSockets(pid: number): { stop(): OpenSocket[] } {
  const seen = new Map<string, OpenSocket & { readonly looks: number }>()
  const look = (): void => {
    for (const [inode, socket] of socketsOf(pid)) {
      const before = seen.get(inode)
      const known = socket.kind === 'unknown' && before ? before : socket
      seen.set(inode, { ...known, looks: (before?.looks ?? 0) + 1 })
    }
  }
  const timer = setInterval(look, LOOK_MS)
  return {
    stop() {
      clearInterval(timer)
      look()
      return [...seen.values()].filter(({ kind, looks }) => kind !== 'unknown' || looks > 1)
    }
  }
}

function inodes(pid: number): string[] {
  return names(pid).flatMap(fd => {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? []
      return inode === undefined ? [] : [inode]
    } catch {
      return [] // closed since the folder was read
    }
  })
}

function names(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch {
    return [] // the process is no more
  }
}

function table(pid: number, kind: string): string[][] {
  try {
    const [, ...lines] = readFileSync(`/proc/${pid}/net/${kind}`, 'utf8').trim().split('\n')
    return lines.map(line => line.trim().split(/\s+/))
  } catch {
    return [] // the process is no more, or the system has none of this kind
  }
}

/** Linux writes addresses as hexadecimal words in the machine's byte order. */
function address(text: string): string {
  const [host = '', port = ''] = text.split(':')
  const bytes = Buffer.from(host.slice(-8), 'hex').reverse()
  return `${[...bytes].join('.')}:${Number.parseInt(port, 16)}`
}
