/** The command line of a running simulator: one command, one call of the control API. */
import { parseArgs } from 'node:util'
import { readControlPort } from './control_file.js'
import { describeMessage, describeState, describeWire, type StateView } from './describe.js'
import { FAULT_HELP } from './fault_help.js'
import { PROXY_MODES } from './socks5_fault.js'
import { type FaultView, Refused, type ShownMessage, type WireMessage } from './types.js'

const OPTIONS = {
  control: { type: 'string' },
  data: { type: 'string', default: 'data/simulator' },
  json: { type: 'boolean', default: false },
  phone: { type: 'string' },
  name: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  id: { type: 'string' },
  code: { type: 'string' },
  ms: { type: 'string' },
  times: { type: 'string' },
  request: { type: 'string' },
  reply: { type: 'string' }
} as const

type Flags = ReturnType<typeof parse>['values']

interface Command {
  /** The words after the name, as the help shows them. */
  readonly usage: string
  readonly help: string
  run(call: Call, words: readonly string[], flags: Flags): Promise<string>
}

type Call = <T>(method: string, path: string, body?: unknown) => Promise<T>

const COMMANDS: Record<string, Command> = {
  scan: {
    usage: '<qr> <phone> [--name NAME]',
    help: 'the owner of the phone scans the QR code (its text, in quotes)',
    run: (call, [qr, phone], { name }) => done(call, '/scan', { qr, phone, name })
  },
  'enter-code': {
    usage: '<code> <phone> [--name NAME]',
    help: 'the owner types the pairing code into the phone',
    run: (call, [code, phone], { name }) => done(call, '/enter-code', { code, phone, name })
  },
  send: {
    usage: '<from> <to> <text> [--id ID]',
    help: 'somebody writes to an account',
    run: async (call, [from, to, text], { id }) => {
      const answer = await call<{ id: string }>('POST', '/send', { from, to, text, id })
      return answer.id
    }
  },
  read: {
    usage: '<contact> <account> [--id ID]',
    help: 'the contact reads what the account sent, or this one message',
    run: async (call, [contact, from], { id }) => {
      const { count } = await call<{ count: number }>('POST', '/read', { contact, from, id })
      return `read ${count}`
    }
  },
  absent: {
    usage: '<phone>',
    help: 'the number has no WhatsApp',
    run: (call, [phone]) => done(call, '/absent', { phones: [phone], absent: true })
  },
  present: {
    usage: '<phone>',
    help: 'the number has WhatsApp again',
    run: (call, [phone]) => done(call, '/absent', { phones: [phone], absent: false })
  },
  ban: onAccount('/ban', 'the account is blocked'),
  unban: onAccount('/unban', 'the account is free again'),
  'log-out': onAccount('/log-out', 'the owner removes the linked device'),
  replace: onAccount('/replace', 'another program takes over the link'),
  drop: onAccount('/drop', 'the connection ends without a word'),
  'stream-error': {
    usage: '<phone> <code>',
    help: 'the server ends the stream with this code',
    run: (call, [phone, code]) => done(call, '/stream-error', { phone, code: number('code', code) })
  },
  fault: {
    usage: '<kind> [--phone P] [--code N] [--ms N] [--times N] [--request R]',
    help: 'a fault that waits for its moment; prints its id',
    run: async (call, [kind], { phone, code, ms, times, request }) => {
      const numbers = { code: number('--code', code), ms: number('--ms', ms), times: number('--times', times) }
      const fault = await call<FaultView>('POST', '/faults', { kind, phone, request, ...numbers })
      return String(fault.id)
    }
  },
  faults: {
    usage: '',
    help: 'the faults that are set',
    run: async call => {
      const { faults } = await call<StateView>('GET', '/state')
      return faults.length === 0 ? 'none' : faults.map(fault => JSON.stringify(fault)).join('\n')
    }
  },
  heal: {
    usage: '<id>',
    help: 'the fault is over',
    run: async (call, [id]) => {
      await call('DELETE', `/faults/${encodeURIComponent(id ?? '')}`)
      return 'done'
    }
  },
  proxy: {
    usage: '<n> <mode> [--reply N] [--ms N]',
    help: 'a fault of a proxy; none heals it',
    run: (call, [n, mode], { reply, ms }) => {
      const body = { mode, reply: number('--reply', reply), ms: number('--ms', ms) }
      return done(call, `/proxies/${encodeURIComponent(n ?? '')}/fault`, body)
    }
  },
  state: {
    usage: '',
    help: 'accounts, pending links, faults and proxies',
    run: async (call, _, { json }) => {
      const state = await call<StateView>('GET', '/state')
      return json ? JSON.stringify(state) : describeState(state)
    }
  },
  messages: {
    usage: '[--from P] [--to P]',
    help: "messages as the recipients' phones show them",
    run: async (call, _, flags) =>
      list(await call<ShownMessage[]>('GET', `/messages${between(flags)}`), flags, describeMessage)
  },
  wire: {
    usage: '[--from P] [--to P]',
    help: 'every message stanza as it came, repeated ones included',
    run: async (call, _, flags) => list(await call<WireMessage[]>('GET', `/wire${between(flags)}`), flags, describeWire)
  }
}

/** Runs one command and answers what to print. */
export async function runCommand(args: readonly string[]): Promise<string> {
  const { values, positionals } = parse(args)
  const [name = 'help', ...words] = positionals
  if (name === 'help') return commandHelp()
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined) throw new Refused(`there is no command ${name}: \`help\` lists them`)
  const wanted = command.usage.match(/<[^>]+>/g)?.length ?? 0
  if (words.length !== wanted) throw new Refused(`use: ${name} ${command.usage}`)
  return command.run(caller(values), words, values)
}

export function commandHelp(): string {
  const commands = Object.entries(COMMANDS).map(
    ([name, { usage, help }]) => `  ${`${name} ${usage}`.padEnd(52)} ${help}`
  )
  const faults = Object.entries(FAULT_HELP).map(([kind, help]) => `  ${kind.padEnd(16)} ${help}`)
  return [
    'Commands for a running simulator (found by --data DIR, default data/simulator, or --control PORT):',
    ...commands,
    '',
    'Faults (for --phone or anyone, --times often or until healed):',
    ...faults,
    '',
    `Modes of a proxy: ${PROXY_MODES.join(', ')}`
  ].join('\n')
}

function parse(args: readonly string[]) {
  return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
}

function caller({ control, data }: Flags): Call {
  const port = number('--control', control) ?? readControlPort(data)
  const start = `start one with \`serve --data ${data}\`, or name the right --data or --control`
  if (port === null) throw new Refused(`no simulator runs on ${data}: ${start}`)
  return async (method, path, body) => {
    const json = body === undefined ? {} : { body: JSON.stringify(body) }
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...json }).catch(() => {
      throw new Refused(`nothing answers on the control port ${port}: ${start}`)
    })
    const answer = (await reply.json()) as { error?: string }
    if (!reply.ok) throw new Refused(answer.error ?? `the simulator answered ${reply.status}`)
    return answer as never
  }
}

function onAccount(path: string, help: string): Command {
  return { usage: '<phone>', help, run: (call, [phone]) => done(call, path, { phone }) }
}

async function done(call: Call, path: string, body: unknown): Promise<string> {
  await call('POST', path, body)
  return 'done'
}

function list<T>(entries: readonly T[], { json }: Flags, describe: (entry: T) => string): string {
  if (json) return JSON.stringify(entries)
  return entries.length === 0 ? 'none' : entries.map(describe).join('\n')
}

function between({ from, to }: Flags): string {
  return `?${new URLSearchParams({ from: from ?? '', to: to ?? '' })}`
}

function number(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  throw new Refused(`${name} must be a whole number`)
}
