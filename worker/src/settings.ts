/** What the worker is told by its environment: read once, at the start, and refused as a whole if anything is wrong. */

import { isAbsolute, join } from 'node:path'
import { type ProxyAddress, ProxyUrlError, parseProxyUrl } from './proxy_url.js'

export interface Settings {
  readonly sessionId: string
  /** Null only when the environment says `direct` out loud. */
  readonly proxy: ProxyAddress | null
  readonly webhookUrl: string
  readonly webhookSecret: string
  readonly keepAlive: boolean
  readonly deviceName: string
  /** All that the session keeps on the disk. */
  readonly folder: string
}

/** The exit code for settings that can't be used (EX_CONFIG): a restart would not help. */
export const BAD_SETTINGS = 78

export const DIRECT = 'direct'

export type Environment = Record<string, string | undefined>

/** One line for each problem; none repeats a value, which may be a secret. */
export class SettingsError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'SettingsError'
    this.problems = problems
  }
}

/** What is wrong with one variable, said after its name. */
class Wrong extends Error {}

interface Variable<Value> {
  readonly name: string
  readonly example: string
  /** What an absent or empty variable stands for; without one it is required. */
  readonly otherwise?: string
  readonly read: (text: string) => Value
}

const SESSION_ID: Variable<string> = { name: 'SESSION_ID', example: 'worker_1', read: sessionId }
const PROXY_URL: Variable<ProxyAddress | null> = {
  name: 'PROXY_URL',
  example: `socks5h://user:password@192.0.2.7:1080, or ${DIRECT} for no proxy at all`,
  read: proxy
}
const WEBHOOK_URL: Variable<string> = {
  name: 'WEBHOOK_URL',
  example: 'http://switchboard:8081/api/webhook',
  read: webhookUrl
}
const WEBHOOK_SECRET: Variable<string> = {
  name: 'WEBHOOK_SECRET',
  example: 'whsec_ followed by 32 random bytes in base64',
  read: webhookSecret
}
const ENABLE_KEEP_ALIVE: Variable<boolean> = {
  name: 'ENABLE_KEEP_ALIVE',
  example: 'true',
  otherwise: 'true',
  read: flag
}
const DEVICE_NAME: Variable<string> = {
  name: 'DEVICE_NAME',
  example: 'Switchboard',
  otherwise: 'Switchboard',
  read: deviceName
}
const SESSIONS_DIR: Variable<string> = {
  name: 'SESSIONS_DIR',
  example: '/app/sessions',
  otherwise: '/app/sessions',
  read: folder
}
const ALL = [SESSION_ID, PROXY_URL, WEBHOOK_URL, WEBHOOK_SECRET, ENABLE_KEEP_ALIVE, DEVICE_NAME, SESSIONS_DIR] as const

export function readSettings(env: Environment): Settings {
  const problems = ALL.flatMap(variable => problemWith<unknown>(variable, env))
  if (problems.length) throw new SettingsError(problems)
  const id = valueFor(SESSION_ID, env)
  return {
    sessionId: id,
    proxy: valueFor(PROXY_URL, env),
    webhookUrl: valueFor(WEBHOOK_URL, env),
    webhookSecret: valueFor(WEBHOOK_SECRET, env),
    keepAlive: valueFor(ENABLE_KEEP_ALIVE, env),
    deviceName: valueFor(DEVICE_NAME, env),
    folder: join(valueFor(SESSIONS_DIR, env), id)
  }
}

/** Once they are read: whatever prints or passes on its environment must not find secrets there. */
export function forgetSettings(env: Environment): void {
  for (const { name } of ALL) delete env[name]
}

function valueFor<Value>(variable: Variable<Value>, env: Environment): Value {
  const text = env[variable.name] || variable.otherwise
  if (!text) throw new Wrong('is not set')
  return variable.read(text)
}

function problemWith<Value>(variable: Variable<Value>, env: Environment): string[] {
  try {
    valueFor(variable, env)
    return []
  } catch (error) {
    if (error instanceof Wrong || error instanceof ProxyUrlError) {
      return [`${variable.name}: ${error.message}. For example: ${variable.example}`]
    }
    throw error
  }
}

function sessionId(text: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text)) {
    throw new Wrong('is not a session id: 1 to 64 letters, digits, _ or -, and the first is a letter or digit')
  }
  return text
}

function proxy(text: string): ProxyAddress | null {
  return text === DIRECT ? null : parseProxyUrl(text)
}

function webhookUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !/^https?:$/.test(url.protocol)) throw new Wrong('is not an http:// or https:// URL')
  if (url.username || url.password) throw new Wrong('holds a user or password; requests are signed instead')
  if (!/(^|\/)webhook$/.test(url.pathname) || url.search || url.hash) {
    throw new Wrong('does not end with /api/webhook, from which the other calls get their address')
  }
  return url.href
}

function webhookSecret(text: string): string {
  const [, key = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const bytes = Buffer.from(key, 'base64')
  if (bytes.toString('base64') !== key || bytes.length < 24) {
    throw new Wrong('is not whsec_ followed by the base64 of 24 bytes or more')
  }
  return text
}

function flag(text: string): boolean {
  if (!/^(true|false)$/i.test(text)) throw new Wrong('is neither true nor false')
  return text.toLowerCase() === 'true'
}

function deviceName(text: string): string {
  if (text.length > 200 || /\p{C}/u.test(text) || !text.trim()) {
    throw new Wrong('is not a name of 1 to 200 visible characters')
  }
  return text
}

function folder(text: string): string {
  if (!isAbsolute(text)) throw new Wrong('is not an absolute path')
  return text
}
