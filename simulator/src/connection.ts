/** One websocket of a client: frames in, stanzas in order out. What stanzas mean is decided by its handlers. */

import type { RawData, WebSocket } from 'ws'
import type { DeviceAddress } from './addresses.js'
import type { ServerIdentity } from './certificates.js'
import { type BinaryNode, decodeBinaryNode, encodeBinaryNode, node } from './codec.js'
import type { Faults } from './faults.js'
import { type ClientPayload, Noise } from './noise.js'

/** How long a client may take to close its side after the server said goodbye. */
const GOODBYE_MS = 2000

export interface ConnectionHandlers {
  onHello(connection: Connection, payload: ClientPayload): void
  onStanza(connection: Connection, stanza: BinaryNode): Promise<void>
  onClose(connection: Connection): void
}

export interface ConnectionParts {
  readonly identity: ServerIdentity
  readonly faults: Faults
  readonly handlers: ConnectionHandlers
  /** Called before every word and every end: what was decided must be kept before anybody can tell. */
  readonly keepState: () => void
  readonly log: (line: string) => void
}

export class Connection {
  /** Set at login. */
  address: DeviceAddress | null = null
  /** Whether the device said that it takes stanzas now. */
  ready = false
  /** The proven static key of the client. */
  clientKey: Buffer = Buffer.alloc(0)
  readonly #socket: WebSocket
  readonly #parts: ConnectionParts
  readonly #noise: Noise
  #work: Promise<void> = Promise.resolve()
  #silent = false
  #cut = false

  constructor(socket: WebSocket, parts: ConnectionParts) {
    this.#socket = socket
    this.#parts = parts
    this.#noise = new Noise(parts.identity, bytes => this.#write(bytes), {
      onHello: (payload, clientKey) => {
        this.clientKey = clientKey
        this.#do(async () => parts.handlers.onHello(this, payload))
      },
      onFrame: bytes => this.#do(() => this.#onFrame(bytes))
    })
    socket.on('message', data => this.#onData(data))
    socket.on('close', () => parts.handlers.onClose(this))
    socket.on('error', () => socket.terminate())
  }

  get open(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  send(stanza: BinaryNode): void {
    if (!this.open || this.#isSilent()) return
    this.#parts.keepState()
    this.#noise.send(encodeBinaryNode(stanza))
  }

  /** `<stream:error>` and the end. */
  streamError(code: number | null, child?: BinaryNode): void {
    this.send(node('stream:error', code === null ? {} : { code: String(code) }, child && [child]))
    this.end()
  }

  /** Ends it in good order, after what was sent. */
  end(): void {
    this.#cut = true
    this.#parts.keepState()
    this.#socket.close()
    setTimeout(() => this.#socket.terminate(), GOODBYE_MS).unref()
  }

  /** Ends it without a word. */
  drop(): void {
    this.#cut = true
    this.#parts.keepState()
    this.#socket.terminate()
  }

  #isSilent(): boolean {
    if (!this.#silent && this.address && this.#parts.faults.strike('silence', this.address.phone)) this.#silent = true
    return this.#silent
  }

  #onData(data: RawData): void {
    try {
      this.#noise.feed(Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer))
    } catch (error) {
      this.#fail(error)
    }
  }

  async #onFrame(bytes: Buffer): Promise<void> {
    // A client that was cut off may have more stanzas on the way: the server never saw them.
    if (this.#cut) return
    await this.#parts.handlers.onStanza(this, await decodeBinaryNode(bytes))
  }

  #do(work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch(error => this.#fail(error))
  }

  #fail(error: unknown): void {
    this.#parts.log(`connection ended: ${error instanceof Error ? error.message : 'unknown error'}`)
    this.drop()
  }

  #write(bytes: Buffer): void {
    if (this.open) this.#socket.send(bytes)
  }
}
