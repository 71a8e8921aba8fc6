/**
 * A SOCKS5 proxy that leads the names of WhatsApp to the simulator and refuses all others, with faults to switch on
 * while it runs. It remembers what it was asked for, so that a test can prove what went through it.
 */

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { checkFault, type ProxyFault, type ProxyMode } from './socks5_fault.js'
import {
  type Address,
  BadRequest,
  METHOD_NONE,
  METHOD_PASSWORD,
  NO_METHOD,
  NotSocks,
  REPLY,
  readGreeting,
  readPassword,
  readRequest,
  replyBytes
} from './socks5_handshake.js'
import { Tunnel } from './socks5_tunnel.js'

export interface Asked extends Address {
  readonly at: number
}

export interface ProxyView {
  readonly port: number
  /** Null if it asks for no password. */
  readonly user: string | null
  readonly mode: ProxyMode
  readonly connections: number
  /** The last requests, newest last. */
  readonly asked: readonly Asked[]
  readonly bytesUp: number
  readonly bytesDown: number
}

export interface ProxyOptions {
  /** Where the names of WhatsApp lead. */
  readonly target: { readonly host: string; readonly port: number }
  readonly listen?: string
  readonly port?: number
  /** Null: nobody is asked for a password. */
  readonly login: { readonly user: string; readonly password: string } | null
  /** `host:port` that may be reached as they are. */
  readonly allow?: readonly string[]
  readonly clock?: () => number
}

const WHATSAPP_NAME = /(^|\.)whatsapp\.(com|net)$/i
const ASKED_KEPT = 500
const REPLY_OF_ERROR: Record<string, number> = { ECONNREFUSED: REPLY.refused, EHOSTUNREACH: REPLY.unreachable }

export class SocksProxy {
  readonly #options: ProxyOptions
  readonly #clock: () => number
  readonly #sockets = new Set<Socket>()
  readonly #tunnels = new Set<Tunnel>()
  readonly #asked: Asked[] = []
  readonly #traffic = { bytesUp: 0, bytesDown: 0 }
  #fault: ProxyFault = { mode: 'none' }
  #server: Server | null = null
  #port: number

  private constructor(options: ProxyOptions) {
    this.#options = options
    this.#clock = options.clock ?? Date.now
    this.#port = options.port ?? 0
  }

  static async start(options: ProxyOptions): Promise<SocksProxy> {
    const proxy = new SocksProxy(options)
    await proxy.#listen()
    return proxy
  }

  get port(): number {
    return this.#port
  }

  view(): ProxyView {
    return {
      port: this.#port,
      user: this.#options.login?.user ?? null,
      mode: this.#fault.mode,
      connections: this.#tunnels.size,
      asked: [...this.#asked],
      ...this.#traffic
    }
  }

  async setFault(fault: ProxyFault): Promise<void> {
    checkFault(fault)
    if (fault.mode === 'drop') {
      this.drop()
      return
    }
    if (fault.mode === 'refuse') this.#stopListening()
    else if (this.#server === null) await this.#listen()
    this.#fault = fault
    if (fault.mode === 'freeze') for (const tunnel of this.#tunnels) tunnel.freeze()
    if (fault.mode === 'none') for (const tunnel of this.#tunnels) tunnel.thaw()
  }

  /** Cuts every connection that exists now and answers how many. */
  drop(): number {
    const count = this.#tunnels.size
    for (const tunnel of this.#tunnels) tunnel.cut()
    for (const socket of this.#sockets) socket.destroy()
    return count
  }

  close(): void {
    this.#stopListening()
    this.drop()
  }

  async #listen(): Promise<void> {
    // Half-open, because one side of a tunnel may end while the other still has something to say.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
      this.#keep(socket)
      this.#serve(socket).catch(() => socket.destroy())
    })
    server.listen(this.#port, this.#options.listen ?? '127.0.0.1')
    await once(server, 'listening')
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
  }

  #stopListening(): void {
    this.#server?.close()
    this.#server = null
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    // What an error means is seen by whoever reads; without a listener it would end the process.
    socket.on('error', () => undefined)
  }

  async #serve(client: Socket): Promise<void> {
    const { mode } = this.#fault
    if (mode === 'close') client.destroy()
    else if (mode === 'hang') hang(client)
    else if (mode === 'garbage') client.resume().end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')
    else if (await this.#admit(client)) await this.#connect(client)
  }

  async #admit(client: Socket): Promise<boolean> {
    const login = this.#options.login
    const offered = await readGreeting(client)
    const method = login === null ? METHOD_NONE : METHOD_PASSWORD
    if (this.#fault.mode === 'no_method' || !offered.includes(method)) {
      client.end(Buffer.from([5, NO_METHOD]))
      return false
    }
    client.write(Buffer.from([5, method]))
    if (login === null) return true
    const given = await readPassword(client)
    const right = given.user === login.user && given.password === login.password
    if (!right || this.#fault.mode === 'wrong_password') {
      client.end(Buffer.from([1, 1]))
      return false
    }
    client.write(Buffer.from([1, 0]))
    return true
  }

  async #connect(client: Socket): Promise<void> {
    try {
      const address = await readRequest(client)
      this.#record(address)
      const { mode, reply, ms } = this.#fault
      if (mode === 'hang_connect') {
        hang(client)
        return
      }
      if (mode === 'reply') throw new BadRequest(reply ?? REPLY.failed, 'a fault')
      if (mode === 'slow') await new Promise(resolve => setTimeout(resolve, ms))
      const upstream = await this.#reach(address)
      if (client.destroyed) upstream.destroy()
      else await this.#join(client, upstream)
    } catch (error) {
      if (error instanceof NotSocks) throw error
      client.end(replyBytes(error instanceof BadRequest ? error.reply : replyTo(error)))
    }
  }

  async #reach(address: Address): Promise<Socket> {
    const { host, port } = this.#route(address)
    const upstream = connect({ host, port, allowHalfOpen: true, noDelay: true })
    this.#keep(upstream)
    await once(upstream, 'connect')
    return upstream
  }

  async #join(client: Socket, upstream: Socket): Promise<void> {
    client.write(replyBytes(REPLY.done))
    const tunnel = new Tunnel(client, upstream, () => (this.#fault.mode === 'slow' ? (this.#fault.ms ?? 0) : 0))
    this.#tunnels.add(tunnel)
    await tunnel.run(this.#traffic)
    this.#tunnels.delete(tunnel)
  }

  #route({ kind, host, port }: Address): { host: string; port: number } {
    if (this.#options.allow?.includes(`${host}:${port}`)) return { host, port }
    if (kind === 'domain' && WHATSAPP_NAME.test(host)) return this.#options.target
    throw new BadRequest(REPLY.notAllowed, 'only the names of WhatsApp may be reached')
  }

  #record(address: Address): void {
    this.#asked.push({ ...address, at: this.#clock() })
    if (this.#asked.length > ASKED_KEPT) this.#asked.shift()
  }
}

/** Reads on, to notice when the client gives up. */
function hang(client: Socket): void {
  client.resume().on('end', () => client.destroy())
}

function replyTo(error: unknown): number {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return REPLY_OF_ERROR[code] ?? REPLY.failed
}
