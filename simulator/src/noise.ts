/** The server's half of Noise_XX_25519_AESGCM_SHA256 and the framing around it, however the bytes are cut. */

import { type ServerIdentity, staticKeys } from './certificates.js'
import {
  aesDecryptGCM,
  aesEncryptGCM,
  Curve,
  hkdf,
  type KeyPair,
  NOISE_MODE,
  NOISE_WA_HEADER,
  proto,
  sha256,
  unbase64
} from './codec.js'

const NOTHING = Buffer.alloc(0)
const ROUTING_HEAD = 7

export type ClientPayload = proto.ClientPayload

export interface NoiseEvents {
  /** The handshake is done: who the client says it is. Its static key is proven. */
  onHello(payload: ClientPayload, clientKey: Buffer): void
  /** One decrypted frame. */
  onFrame(bytes: Buffer): void
}

export class Noise {
  readonly #identity: ServerIdentity
  readonly #write: (bytes: Buffer) => void
  readonly #events: NoiseEvents
  #buffer: Buffer = NOTHING
  #stage: 'intro' | 'hello' | 'finish' | 'open' = 'intro'
  #hash: Buffer = Buffer.from(NOISE_MODE)
  #salt: Buffer = this.#hash
  #key: Buffer = this.#hash
  #counter = 0
  #ephemeral: KeyPair | null = null
  #reading = { key: NOTHING as Buffer, count: 0 }
  #writing = { key: NOTHING as Buffer, count: 0 }

  constructor(identity: ServerIdentity, write: (bytes: Buffer) => void, events: NoiseEvents) {
    this.#identity = identity
    this.#write = write
    this.#events = events
  }

  feed(bytes: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? bytes : Buffer.concat([this.#buffer, bytes])
    if (this.#stage === 'intro' && !this.#readIntro()) return
    while (this.#buffer.length >= 3) {
      const end = 3 + this.#buffer.readUIntBE(0, 3)
      if (this.#buffer.length < end) return
      const frame = this.#buffer.subarray(3, end)
      this.#buffer = this.#buffer.subarray(end)
      this.#onFrame(frame)
    }
  }

  send(plain: Uint8Array): void {
    if (this.#stage !== 'open') throw new Error('Nothing can be sent before the handshake is done')
    this.#frame(aesEncryptGCM(plain, this.#writing.key, nonce(this.#writing.count++), NOTHING))
  }

  /** The intro, with the routing prefix that a client sends once it was given one. */
  #readIntro(): boolean {
    if (this.#buffer.length < 4) return false
    if (this.#buffer.toString('latin1', 0, 2) === 'ED') {
      if (this.#buffer.length < ROUTING_HEAD) return false
      const end = ROUTING_HEAD + this.#buffer.readUIntBE(4, 3)
      if (this.#buffer.length < end + 4) return false
      this.#buffer = this.#buffer.subarray(end)
    }
    if (!this.#buffer.subarray(0, 4).equals(NOISE_WA_HEADER)) throw new Error('The intro is not that of WhatsApp')
    this.#buffer = this.#buffer.subarray(4)
    this.#stage = 'hello'
    return true
  }

  #onFrame(frame: Buffer): void {
    if (this.#stage === 'hello') this.#onClientHello(frame)
    else if (this.#stage === 'finish') this.#onClientFinish(frame)
    else this.#events.onFrame(aesDecryptGCM(frame, this.#reading.key, nonce(this.#reading.count++), NOTHING))
  }

  #onClientHello(frame: Buffer): void {
    const theirs = proto.HandshakeMessage.decode(frame).clientHello?.ephemeral
    if (!theirs) throw new Error('The client hello lacks its ephemeral key')
    const ours = Curve.generateKeyPair()
    const server = staticKeys(this.#identity)
    this.#ephemeral = ours
    for (const part of [NOISE_WA_HEADER, theirs, ours.public]) this.#absorb(part)
    this.#mix(Curve.sharedKey(ours.private, Buffer.from(theirs)))
    const sealedKey = this.#seal(server.public)
    this.#mix(Curve.sharedKey(server.private, Buffer.from(theirs)))
    const payload = this.#seal(unbase64(this.#identity.chain))
    const hello = { serverHello: { ephemeral: ours.public, static: sealedKey, payload } }
    this.#frame(proto.HandshakeMessage.encode(hello).finish())
    this.#stage = 'finish'
  }

  #onClientFinish(frame: Buffer): void {
    const finish = proto.HandshakeMessage.decode(frame).clientFinish
    if (!finish?.static || !finish.payload || !this.#ephemeral) throw new Error('The client finish is incomplete')
    const clientKey = this.#unseal(Buffer.from(finish.static))
    this.#mix(Curve.sharedKey(this.#ephemeral.private, clientKey))
    const payload = proto.ClientPayload.decode(this.#unseal(Buffer.from(finish.payload)))
    const keys = Buffer.from(hkdf(NOTHING, 64, { salt: this.#salt, info: '' }))
    this.#reading = { key: keys.subarray(0, 32), count: 0 }
    this.#writing = { key: keys.subarray(32), count: 0 }
    this.#stage = 'open'
    this.#events.onHello(payload, clientKey)
  }

  #frame(data: Uint8Array): void {
    const framed = Buffer.allocUnsafe(3 + data.length)
    framed.writeUIntBE(data.length, 0, 3)
    framed.set(data, 3)
    this.#write(framed)
  }

  #absorb(data: Uint8Array): void {
    this.#hash = sha256(Buffer.concat([this.#hash, data]))
  }

  #mix(secret: Uint8Array): void {
    const keys = Buffer.from(hkdf(Buffer.from(secret), 64, { salt: this.#salt, info: '' }))
    this.#salt = keys.subarray(0, 32)
    this.#key = keys.subarray(32)
    this.#counter = 0
  }

  #seal(plain: Uint8Array): Buffer {
    const sealed = aesEncryptGCM(plain, this.#key, nonce(this.#counter++), this.#hash)
    this.#absorb(sealed)
    return sealed
  }

  #unseal(sealed: Buffer): Buffer {
    const plain = aesDecryptGCM(sealed, this.#key, nonce(this.#counter++), this.#hash)
    this.#absorb(sealed)
    return plain
  }
}

function nonce(count: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32BE(count, 8)
  return bytes
}
