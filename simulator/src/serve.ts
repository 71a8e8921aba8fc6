/** `serve`: builds the whole simulator from the command line's options, and takes it down again. */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startControl } from './control.js'
import { isRunning, type Running, removeRunning, writeRunning } from './control_file.js'
import { MediaStore } from './media.js'
import { startPeople } from './people.js'
import { startWhatsApp } from './server.js'
import { type ProxyOptions, SocksProxy } from './socks5.js'
import { ensureTls } from './tls.js'
import { Refused } from './types.js'

export const SERVE_OPTIONS = {
  data: { type: 'string', default: 'data/simulator' },
  port: { type: 'string' },
  'control-port': { type: 'string' },
  proxy: { type: 'string', multiple: true },
  'proxy-port': { type: 'string', multiple: true },
  listen: { type: 'string', default: '127.0.0.1' },
  allow: { type: 'string', multiple: true },
  history: { type: 'string', default: 'inline' },
  inbound: { type: 'string', default: 'lid' },
  answer: { type: 'boolean', default: false },
  'until-stdin-closes': { type: 'boolean', default: false }
} as const

export interface ServeOptions {
  readonly data: string
  readonly port: number
  readonly controlPort: number
  readonly proxies: readonly Pick<ProxyOptions, 'login' | 'port' | 'listen' | 'allow'>[]
  readonly history: 'inline' | 'external'
  readonly inbound: 'pn' | 'lid'
  readonly answer: boolean
  readonly untilStdinCloses: boolean
}

export interface Serving {
  readonly running: Running
  stop(): Promise<void>
}

export function readServeOptions(args: readonly string[]): ServeOptions {
  const { values } = parseArgs({ args: [...args], options: SERVE_OPTIONS })
  return {
    data: resolve(values.data),
    port: portOf('--port', values.port),
    controlPort: portOf('--control-port', values['control-port']),
    proxies: (values.proxy ?? []).map((login, index) => ({
      login: loginOf(login),
      port: portOf('--proxy-port', values['proxy-port']?.[index]),
      listen: values.listen,
      allow: values.allow ?? []
    })),
    history: wordOf('--history', values.history, ['inline', 'external']),
    inbound: wordOf('--inbound', values.inbound, ['pn', 'lid']),
    answer: values.answer,
    untilStdinCloses: values['until-stdin-closes']
  }
}

export async function startSimulator(options: ServeOptions, log: (line: string) => void): Promise<Serving> {
  const { data } = options
  await refuseSecond(data)
  const tls = await ensureTls(join(data, 'tls'))
  const whatsapp = await startWhatsApp({
    dataDir: join(data, 'whatsapp'),
    port: options.port,
    tls: { key: tls.key, cert: tls.cert },
    media: new MediaStore(join(data, 'media')),
    log,
    historyAs: options.history,
    inboundBy: options.inbound
  })
  const target = { host: '127.0.0.1', port: whatsapp.port }
  const proxies = await Promise.all(options.proxies.map(proxy => SocksProxy.start({ ...proxy, target })))
  const control = await startControl({ whatsapp, proxies }, options.controlPort, log)
  if (options.answer) whatsapp.behave({ readAfterMs: null })
  const stopPeople = options.answer ? startPeople(whatsapp, { log }) : () => undefined
  const running: Running = {
    whatsapp: whatsapp.port,
    control: control.port,
    ca: tls.caFile,
    proxies: proxies.map((proxy, index) => ({ n: index + 1, port: proxy.port, user: proxy.view().user })),
    pid: process.pid
  }
  writeRunning(data, running)
  return {
    running,
    stop: async () => {
      removeRunning(data)
      stopPeople()
      control.close()
      for (const proxy of proxies) proxy.close()
      await whatsapp.close()
    }
  }
}

/** Two of them would write over each other's state. */
async function refuseSecond(data: string): Promise<void> {
  if (await isRunning(data)) {
    throw new Refused(`a simulator already runs on ${data}: stop it first, or choose another folder with --data`)
  }
}

function portOf(name: string, value: string | undefined): number {
  const port = Number(value ?? 0)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new Refused(`${name} must be a port number from 0 to 65535`)
}

function loginOf(value: string): ProxyOptions['login'] {
  if (value === 'none') return null
  const colon = value.indexOf(':')
  if (colon > 0 && colon < value.length - 1) {
    return { user: value.slice(0, colon), password: value.slice(colon + 1) }
  }
  throw new Refused('--proxy must be user:password, or none for a proxy that asks for no password')
}

function wordOf<T extends string>(name: string, value: string, words: readonly T[]): T {
  const word = words.find(known => known === value)
  if (word !== undefined) return word
  throw new Refused(`${name} must be ${words.join(' or ')}`)
}
