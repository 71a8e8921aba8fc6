/** Linking a new device: QR codes, and the last step that both ways of pairing share. Codes are in linkcode.ts. */

import { randomBytes } from 'node:crypto'
import type { Accounts } from './accounts.js'
import { type DeviceAddress, jidOf } from './addresses.js'
import {
  type BinaryNode,
  base64,
  Curve,
  childOf,
  hmacSign,
  needBytes,
  node,
  numberOf,
  proto,
  SERVER,
  signatureHolds,
  WA_ADV_ACCOUNT_SIG_PREFIX,
  WA_ADV_DEVICE_SIG_PREFIX
} from './codec.js'
import type { Connection } from './connection.js'
import type { Faults } from './faults.js'
import type { ClientPayload } from './noise.js'
import type { Phones } from './phones.js'
import { type PendingView, type Phone, Refused } from './types.js'

const REFS = 6
const PATIENCE_MS = 20_000

/** What a device says about itself when it asks to be linked. */
export interface Registration {
  readonly name: string
  readonly registrationId: number
  readonly identityKey: Buffer
  readonly signedPreKey: { readonly id: number; readonly key: Buffer; readonly signature: Buffer }
}

/** A client that wants to be linked. */
export interface Pending {
  readonly connection: Connection
  readonly registration: Registration
  readonly refs: readonly string[]
  readonly since: number
  /** Set once it asked for a pairing code. */
  code: { readonly phone: Phone; readonly wrappedKey: Buffer; readonly ref: Buffer } | null
  /** Whoever waits for the next word of the client. */
  expecting: { readonly what: string; resolve(stanza: BinaryNode): void; reject(error: Error): void } | null
}

export interface PairingParts {
  readonly accounts: Accounts
  readonly phones: Phones
  readonly faults: Faults
  readonly clock: () => number
  readonly onLinked: (address: DeviceAddress) => void
}

export class Pairing {
  readonly #parts: PairingParts
  readonly #pending = new Map<Connection, Pending>()

  constructor(parts: PairingParts) {
    this.#parts = parts
  }

  views(): PendingView[] {
    return [...this.#pending.values()].map(({ code, since }) => {
      return code ? { kind: 'code', phone: code.phone, since } : { kind: 'qr', phone: null, since }
    })
  }

  of(connection: Connection): Pending | undefined {
    return this.#pending.get(connection)
  }

  /** The newest client that asked for a code for this number. */
  withCode(phone: Phone): Pending | undefined {
    return [...this.#pending.values()].filter(({ code }) => code?.phone === phone).at(-1)
  }

  /** A client without an account said hello: it gets references for its QR codes. */
  begin(connection: Connection, payload: ClientPayload): void {
    const refs = Array.from({ length: REFS }, () => `2@${randomBytes(24).toString('base64url')}`)
    const registration = registrationIn(payload)
    const since = this.#parts.clock()
    this.#pending.set(connection, { connection, registration, refs, since, code: null, expecting: null })
    const content = refs.map(ref => node('ref', {}, Buffer.from(ref)))
    connection.send(this.#iq([node('pair-device', {}, content)]))
  }

  ended(connection: Connection): void {
    const pending = this.#pending.get(connection)
    this.#pending.delete(connection)
    pending?.expecting?.reject(
      new Refused('The device that wanted to be linked hung up: show a new code and try again')
    )
  }

  async scan(qr: string, phone: Phone, name: string): Promise<void> {
    const [ref = '', noiseKey = '', identityKey = '', secret = ''] = qr.replace(/^.*#/, '').split(',')
    const pending = [...this.#pending.values()].find(({ refs }) => refs.includes(ref))
    if (!pending) throw new Refused('This QR code is not on any screen any more: scan the one that is shown now')
    if (pending.expecting) throw new Refused('This device is being linked already: wait for it')
    const { clientKey } = pending.connection
    if (noiseKey !== base64(clientKey) || identityKey !== base64(pending.registration.identityKey)) {
      throw new Refused('The keys in this QR code are not those of the device that shows it')
    }
    await this.link(pending, phone, name, Buffer.from(secret, 'base64'))
  }

  /** Refuses a phone that cannot link a device. */
  check(phone: Phone): void {
    if (this.#parts.phones.isAbsent(phone)) throw new Refused(`${phone} is set absent: it has no WhatsApp to link to`)
    this.#parts.accounts.checkRoom(phone)
  }

  /** The phone vouches for the device, the device signs back, and then it must come again with its new address. */
  async link(pending: Pending, phone: Phone, name: string, secret: Buffer): Promise<void> {
    this.check(phone)
    const address = this.#parts.accounts.nextAddress(phone)
    const { connection } = pending
    if (this.#parts.faults.strike('passkey', phone)) {
      connection.send(this.#passkeyRequest())
      return
    }
    const vouched = this.#vouch(pending.registration, address)
    connection.send(
      this.#iq([
        node('pair-success', {}, [
          node('device-identity', {}, sealedIdentity(vouched, secret)),
          node('biz', { name }),
          node('device', { jid: jidOf(address, 'pn'), lid: jidOf(address, 'lid') }),
          node('platform', { name: 'android' })
        ])
      ])
    )
    const signed = await this.expect(pending, 'pair-device-sign')
    this.#finish(pending, address, name, vouched, needBytes(childOf(signed, 'pair-device-sign'), 'device-identity'))
  }

  /** The next stanza of a kind from a client that is being linked. */
  expect(pending: Pending, what: string): Promise<BinaryNode> {
    return new Promise<BinaryNode>((resolve, reject) => {
      const timer = setTimeout(() => {
        pending.expecting = null
        reject(new Refused(`The device that wanted to be linked did not answer (${what}): try again`))
      }, PATIENCE_MS)
      pending.expecting = {
        what,
        resolve: stanza => {
          clearTimeout(timer)
          pending.expecting = null
          resolve(stanza)
        },
        reject: error => {
          clearTimeout(timer)
          pending.expecting = null
          reject(error)
        }
      }
    })
  }

  #iq(content: BinaryNode[]): BinaryNode {
    const t = String(Math.floor(this.#parts.clock() / 1000))
    return node('iq', { from: SERVER, type: 'set', id: randomBytes(6).toString('hex'), xmlns: 'md', t }, content)
  }

  #passkeyRequest(): BinaryNode {
    const t = String(Math.floor(this.#parts.clock() / 1000))
    const attrs = { from: SERVER, type: 'passkey_prologue_request', id: randomBytes(6).toString('hex'), t }
    return node('notification', attrs, [node('passkey_prologue', {}, randomBytes(32))])
  }

  #vouch(registration: Registration, address: DeviceAddress): proto.ADVSignedDeviceIdentity {
    const { identity } = this.#parts.phones.of(address.phone)
    const details = proto.ADVDeviceIdentity.encode({
      rawId: numberOf(randomBytes(4)),
      timestamp: Math.floor(this.#parts.clock() / 1000),
      keyIndex: address.device,
      accountType: proto.ADVEncryptionType.E2EE,
      deviceType: proto.ADVEncryptionType.E2EE
    }).finish()
    const claim = Buffer.concat([WA_ADV_ACCOUNT_SIG_PREFIX, details, registration.identityKey])
    const accountSignature = Curve.sign(identity.private, claim)
    return proto.ADVSignedDeviceIdentity.create({ details, accountSignatureKey: identity.public, accountSignature })
  }

  #finish(
    pending: Pending,
    address: DeviceAddress,
    name: string,
    vouched: proto.ADVSignedDeviceIdentity,
    bytes: Buffer
  ): void {
    const { connection, registration } = pending
    const { deviceSignature } = proto.ADVSignedDeviceIdentity.decode(bytes)
    const { details, accountSignatureKey } = vouched
    if (!details || !accountSignatureKey || !deviceSignature) throw new Refused('The device left its identity unsigned')
    const claim = Buffer.concat([WA_ADV_DEVICE_SIG_PREFIX, details, registration.identityKey, accountSignatureKey])
    if (!signatureHolds(registration.identityKey, claim, deviceSignature)) {
      connection.drop()
      throw new Refused('The device signed its identity with a wrong key')
    }
    const { id, key, signature } = registration.signedPreKey
    this.#pending.delete(connection)
    this.#parts.accounts.link(
      {
        ...address,
        name: registration.name,
        noiseKey: base64(connection.clientKey),
        identityKey: base64(registration.identityKey),
        registrationId: registration.registrationId,
        signedPreKey: { id, key: base64(key), signature: base64(signature) },
        signedIdentity: base64(
          proto.ADVSignedDeviceIdentity.encode({ ...vouched, deviceSignature: Buffer.from(deviceSignature) }).finish()
        )
      },
      name
    )
    connection.streamError(515)
    this.#parts.onLinked(address)
  }
}

function sealedIdentity(vouched: proto.ADVSignedDeviceIdentity, secret: Buffer): Uint8Array {
  const details = proto.ADVSignedDeviceIdentity.encode(vouched).finish()
  return proto.ADVSignedDeviceIdentityHMAC.encode({ details, hmac: hmacSign(details, secret) }).finish()
}

function registrationIn(payload: ClientPayload): Registration {
  const data = payload.devicePairingData
  if (!data?.eRegid || !data.eIdent || !data.eSkeyId || !data.eSkeyVal || !data.eSkeySig) {
    throw new Error('The client left out keys that pairing needs')
  }
  const props = proto.DeviceProps.decode(data.deviceProps ?? new Uint8Array())
  const platform = proto.DeviceProps.PlatformType[props.platformType ?? 0] ?? 'UNKNOWN'
  return {
    name: `${platform} (${props.os ?? 'unknown'})`,
    registrationId: numberOf(data.eRegid),
    identityKey: Buffer.from(data.eIdent),
    signedPreKey: {
      id: numberOf(data.eSkeyId),
      key: Buffer.from(data.eSkeyVal),
      signature: Buffer.from(data.eSkeySig)
    }
  }
}
