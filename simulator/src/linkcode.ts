/** Linking a new device with a code that its owner types into the phone: the phone's and the server's half. */

import { randomBytes } from 'node:crypto'
import { addressOf } from './addresses.js'
import {
  aesDecryptCTR,
  aesDecryptGCM,
  aesEncryptCTR,
  type BinaryNode,
  Curve,
  derivePairingCodeKey,
  hkdf,
  type KeyPair,
  needBytes,
  node,
  SERVER
} from './codec.js'
import type { Connection } from './connection.js'
import { RequestError } from './errors.js'
import type { Pairing, Pending } from './pairing.js'
import type { Phones } from './phones.js'
import { type Phone, Refused } from './types.js'

const SALT = 32
const CTR_IV = 16
const GCM_IV = 12
const KEY = 32

export class LinkCodes {
  readonly #pairing: Pairing
  readonly #phones: Phones
  readonly #clock: () => number
  /** How the key bundle of a client is opened, from the moment its code was typed. */
  readonly #openers = new WeakMap<Connection, (request: BinaryNode) => void>()

  constructor(pairing: Pairing, phones: Phones, clock: () => number) {
    this.#pairing = pairing
    this.#phones = phones
    this.#clock = clock
  }

  /** The client asks for a code (`companion_hello`). It made the code up itself; the server never learns it. */
  hello(connection: Connection, request: BinaryNode): BinaryNode[] {
    const pending = this.#pairing.of(connection)
    const address = addressOf(request.attrs['jid'])
    if (!pending || !address) throw new RequestError(400, 'bad-request')
    if (!needBytes(request, 'companion_server_auth_key_pub').equals(connection.clientKey)) {
      throw new RequestError(403, 'forbidden')
    }
    const ref = randomBytes(24)
    const wrappedKey = needBytes(request, 'link_code_pairing_wrapped_companion_ephemeral_pub')
    pending.code = { phone: address.phone, wrappedKey, ref }
    return [node('link_code_companion_reg', { stage: 'companion_hello' }, [node('link_code_pairing_ref', {}, ref)])]
  }

  /** The owner typed a code. Whether it was the right one shows only in what the client answers. */
  async enter(typed: string, phone: Phone, name: string): Promise<void> {
    const code = typed.replace(/[\s-]/g, '').toUpperCase()
    if (!/^[0-9A-Z]{8}$/.test(code)) throw new Refused('A pairing code has 8 letters and digits')
    const pending = this.#pairing.withCode(phone)
    if (!pending?.code) throw new Refused(`No device asked for a pairing code for ${phone}: ask for one first`)
    this.#pairing.check(phone)
    if (pending.expecting) throw new Refused('This device is being linked already: wait for it')
    const ephemeral = Curve.generateKeyPair()
    const { wrappedKey, ref } = pending.code
    const key = await derivePairingCodeKey(code, wrappedKey.subarray(0, SALT))
    const theirs = aesDecryptCTR(wrappedKey.subarray(SALT + CTR_IV), key, wrappedKey.subarray(SALT, SALT + CTR_IV))
    const shared = Curve.sharedKey(ephemeral.private, theirs)
    const opened: { secret?: Buffer } = {}
    this.#openers.set(pending.connection, request => {
      opened.secret = this.#open(request, pending, phone, shared)
    })
    const hello = await this.#primaryHello(code, phone, ephemeral, ref)
    const answer = this.#pairing.expect(pending, 'companion_finish')
    pending.connection.send(hello)
    await answer
    if (opened.secret) await this.#pairing.link(pending, phone, name, opened.secret)
  }

  /** The client's last word (`companion_finish`). Answers what is to be done once the client has its answer. */
  finish(connection: Connection, request: BinaryNode): () => void {
    const expecting = this.#pairing.of(connection)?.expecting
    const open = this.#openers.get(connection)
    this.#openers.delete(connection)
    if (expecting?.what !== 'companion_finish' || !open) throw new RequestError(400, 'bad-request')
    try {
      open(request)
    } catch (error) {
      expecting.reject(error instanceof Error ? error : new Refused('The device sent keys that cannot be read'))
      throw new RequestError(400, 'bad-request')
    }
    return () => expecting.resolve(request)
  }

  async #primaryHello(code: string, phone: Phone, ephemeral: KeyPair, ref: Buffer): Promise<BinaryNode> {
    const salt = randomBytes(SALT)
    const iv = randomBytes(CTR_IV)
    const key = await derivePairingCodeKey(code, salt)
    const wrapped = Buffer.concat([salt, iv, aesEncryptCTR(ephemeral.public, key, iv)])
    const t = String(Math.floor(this.#clock() / 1000))
    const attrs = { from: SERVER, type: 'link_code_companion_reg', id: randomBytes(6).toString('hex'), t }
    return node('notification', attrs, [
      node('link_code_companion_reg', { stage: 'primary_hello' }, [
        node('link_code_pairing_ref', {}, ref),
        node('primary_identity_pub', {}, this.#phones.of(phone).identity.public),
        node('link_code_pairing_wrapped_primary_ephemeral_pub', {}, wrapped)
      ])
    ])
  }

  /** Opens the client's key bundle, which works only if both sides used the same code; answers the common secret. */
  #open(request: BinaryNode, pending: Pending, phone: Phone, shared: Buffer): Buffer {
    const sealed = needBytes(request, 'link_code_pairing_wrapped_key_bundle')
    const ours = this.#phones.of(phone).identity
    const info = 'link_code_pairing_key_bundle_encryption_key'
    const key = Buffer.from(hkdf(shared, KEY, { salt: sealed.subarray(0, SALT), info }))
    const bundle = unsealed(sealed.subarray(SALT), key)
    if (!bundle) throw new Refused('The pairing code is wrong: type the one that is shown')
    const { identityKey } = pending.registration
    const said = needBytes(request, 'companion_identity_public')
    if (!bundle.subarray(0, KEY).equals(identityKey) || !said.equals(identityKey)) {
      throw new Refused('The device that wanted to be linked changed its identity in the middle')
    }
    if (!bundle.subarray(KEY, 2 * KEY).equals(ours.public)) {
      throw new Refused('The device that wanted to be linked talks to another phone')
    }
    const identityShared = Curve.sharedKey(ours.private, identityKey)
    const secret = hkdf(Buffer.concat([shared, identityShared, bundle.subarray(2 * KEY)]), KEY, { info: 'adv_secret' })
    return Buffer.from(secret)
  }
}

function unsealed(sealed: Buffer, key: Buffer): Buffer | null {
  try {
    return aesDecryptGCM(sealed.subarray(GCM_IV), key, sealed.subarray(0, GCM_IV), Buffer.alloc(0))
  } catch {
    return null
  }
}
