/** Real Baileys clients for the tests: paired in memory, reconnecting only when told. */

import '../src/silence.js'
import {
  type AuthenticationCreds,
  type AuthenticationState,
  type BinaryNode,
  BufferJSON,
  type ConnectionState,
  initAuthCreds,
  makeWASocket,
  type proto,
  type SignalDataSet,
  type SignalKeyStore,
  type WAMessage,
  type WASocket
} from 'baileys'
import type { WhatsApp } from '../src/types.js'

const quiet = (): void => undefined
/** The library's log is none of a test's business. */
export const logger = {
  level: 'silent',
  child: () => logger,
  trace: quiet,
  debug: quiet,
  info: quiet,
  warn: quiet,
  error: quiet
}

const WAIT_MS = 8000
const LONG_MS = 1000

// Baileys leaves timers of up to 30 seconds behind, which would keep every test file alive that long. While a test waits, they still strike.
const setTimer = globalThis.setTimeout
globalThis.setTimeout = Object.assign((work: () => void, ms?: number, ...args: []) => {
  const timer = setTimer(work, ms, ...args)
  return (ms ?? 0) >= LONG_MS ? timer.unref() : timer
}, setTimer) as typeof setTimeout

/** Waits for a condition, and says which one it was if it never came. */
export async function until<T>(what: string, probe: () => T | undefined | null | false): Promise<T> {
  const end = Date.now() + WAIT_MS
  for (;;) {
    const found = probe()
    if (found) return found
    if (Date.now() > end) throw new Error(`Waited in vain for: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** Credentials that can be put back to an earlier moment, as after a crash before a write. */
export class Memory {
  creds: AuthenticationCreds = initAuthCreds()
  #keys = new Map<string, string>()

  get state(): AuthenticationState {
    return { creds: this.creds, keys: this.#store() }
  }

  snapshot(): string {
    return JSON.stringify({ creds: this.creds, keys: [...this.#keys] }, BufferJSON.replacer)
  }

  restore(snapshot: string): void {
    const { creds, keys } = JSON.parse(snapshot, BufferJSON.reviver) as {
      creds: AuthenticationCreds
      keys: [string, string][]
    }
    this.creds = creds
    this.#keys = new Map(keys)
  }

  /** Only the keys, under a living socket: as if their last writes had never happened. */
  restoreKeys(snapshot: string): void {
    const { keys } = JSON.parse(snapshot, BufferJSON.reviver) as { keys: [string, string][] }
    this.#keys = new Map(keys)
  }

  forget(kind: string): void {
    for (const key of [...this.#keys.keys()]) if (key.startsWith(`${kind}/`)) this.#keys.delete(key)
  }

  #store(): SignalKeyStore {
    return {
      get: async (type, ids) => {
        const found = ids.flatMap(id => {
          const text = this.#keys.get(`${type}/${id}`)
          return text === undefined ? [] : [[id, JSON.parse(text, BufferJSON.reviver)] as const]
        })
        return Object.fromEntries(found)
      },
      set: async (data: SignalDataSet) => {
        for (const [type, values] of Object.entries(data)) {
          for (const [id, value] of Object.entries(values ?? {})) {
            if (value) this.#keys.set(`${type}/${id}`, JSON.stringify(value, BufferJSON.replacer))
            else this.#keys.delete(`${type}/${id}`)
          }
        }
      }
    }
  }
}

interface RawSocket {
  send(data: unknown, done?: () => void): void
  terminate(): void
}

export class Client {
  readonly memory = new Memory()
  readonly received: WAMessage[] = []
  readonly upserts: string[] = []
  readonly acks: BinaryNode[] = []
  /** All statuses seen of each message that was sent: 0 error, 1 pending, 2 taken, 3 delivered, 4 read. */
  readonly statuses = new Map<string, number[]>()
  /** Of the socket of now; an earlier one may still be ending. */
  updates: Partial<ConnectionState>[] = []
  readonly nodes: BinaryNode[] = []
  readonly #sent = new Map<string, proto.IMessage>()
  socket: WASocket
  #url: string

  readonly #history: boolean

  constructor(whatsapp: WhatsApp, options: { history?: boolean } = {}) {
    this.#history = options.history ?? true
    this.#url = `ws://127.0.0.1:${whatsapp.port}/ws/chat`
    this.socket = this.connect()
  }

  moveTo(whatsapp: WhatsApp): void {
    this.#url = `ws://127.0.0.1:${whatsapp.port}/ws/chat`
  }

  /** A new socket with what is remembered. */
  connect(): WASocket {
    const updates: Partial<ConnectionState>[] = []
    this.updates = updates
    const { memory } = this
    const socket = makeWASocket({
      auth: memory.state,
      waWebSocketUrl: this.#url,
      logger,
      browser: ['Ubuntu', 'Chrome', '22'],
      defaultQueryTimeoutMs: 3000,
      retryRequestDelayMs: 5,
      shouldSyncHistoryMessage: () => this.#history,
      getMessage: async ({ id }) => this.#sent.get(id ?? '')
    })
    socket.ev.on('creds.update', update => Object.assign(memory.creds, update))
    socket.ev.on('connection.update', update => updates.push(update))
    socket.ev.on('messages.upsert', ({ messages, type }) => {
      this.received.push(...messages)
      this.upserts.push(...messages.map(() => type))
      // Baileys folds an early receipt into the message itself.
      for (const { key, status } of messages) if (key.fromMe) this.#noteStatus(key.id, status)
    })
    socket.ev.on('messages.update', updates => {
      for (const { key, update } of updates) this.#noteStatus(key.id, update.status)
    })
    socket.ws.on('CB:ack,class:message', (node: BinaryNode) => this.acks.push(node))
    for (const tag of ['receipt', 'notification', 'message']) {
      socket.ws.on(`CB:${tag}`, (node: BinaryNode) => this.nodes.push(node))
    }
    this.socket = socket
    return socket
  }

  qr(): Promise<string> {
    return until('a QR code', () => this.updates.map(({ qr }) => qr).find(qr => qr !== undefined))
  }

  async closed(): Promise<void> {
    await until('the end', () => this.updates.some(({ connection }) => connection === 'close'))
  }

  /** The reason the socket ended for. */
  async ending(): Promise<{ code: number; error: Error }> {
    const error = await until('the end of the connection', () => {
      return this.updates.find(({ connection }) => connection === 'close')?.lastDisconnect?.error
    })
    return { code: (error as { output?: { statusCode: number } }).output?.statusCode ?? 0, error }
  }

  opened(): Promise<unknown> {
    return until('an open connection', () => this.updates.find(({ connection }) => connection === 'open'))
  }

  /** Open, and with nothing held back any more. */
  async ready(): Promise<void> {
    await this.opened()
    await until('the first sync', () => (this.memory.creds.accountSyncCounter ?? 0) > 0)
  }

  async reconnect(): Promise<void> {
    this.connect()
    await this.ready()
  }

  async texts(count: number): Promise<string[]> {
    await until(`${count} messages`, () => this.inbox().length >= count)
    return this.inbox()
  }

  inbox(): string[] {
    return this.received
      .filter(({ key, message }) => !key.fromMe && message)
      .map(({ message }) => message?.conversation || message?.extendedTextMessage?.text || '')
  }

  async send(to: string, text: string, id: string): Promise<void> {
    this.#sent.set(id, { extendedTextMessage: { text } })
    await this.socket.sendMessage(`${to}@s.whatsapp.net`, { text }, { messageId: id })
  }

  async ack(id: string): Promise<BinaryNode> {
    return until(`the ack of ${id}`, () => this.acks.find(({ attrs }) => attrs['id'] === id))
  }

  async status(id: string, status: number): Promise<void> {
    await until(`status ${status} of ${id}`, () => this.statuses.get(id)?.includes(status))
  }

  /** From here on nothing the client says reaches the server. */
  gag(): void {
    this.#raw().send = (_data, done) => done?.()
  }

  /** The process is gone, without a word. What it remembers is what it had written down. */
  async kill(remembers = this.memory.snapshot()): Promise<void> {
    this.gag()
    this.#raw().terminate()
    await this.closed()
    this.memory.restore(remembers)
  }

  async end(): Promise<void> {
    this.socket.end(undefined)
    await this.closed()
  }

  #noteStatus(id: string | null | undefined, status: number | null | undefined): void {
    if (typeof status !== 'number' || !id) return
    this.statuses.set(id, [...(this.statuses.get(id) ?? []), status])
  }

  #raw(): RawSocket {
    return (this.socket.ws as unknown as { socket: RawSocket }).socket
  }
}

/** A client that is linked to `phone` and ready. */
export async function paired(whatsapp: WhatsApp, phone: string, name = 'Owner'): Promise<Client> {
  const client = new Client(whatsapp)
  const scanned = whatsapp.scan(await client.qr(), phone, name)
  const { code } = await client.ending()
  await scanned
  if (code !== 515) throw new Error(`Expected 515 after pairing, got ${code}`)
  await client.reconnect()
  return client
}
