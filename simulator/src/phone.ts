/**
 * One simulated phone: a primary device with real Signal keys and sessions that only move forward, so that a message
 * key used twice fails here exactly as it fails on a real phone. Knows nothing of stanzas.
 */

import type { DeviceAddress } from './addresses.js'
import { type Bundle, signalBundle } from './bundles.js'
import {
  base64,
  encodeWAMessage,
  generateSignalPubKey,
  type KeptPair,
  keep,
  newPair,
  proto,
  signal,
  signedKeyPair,
  unbase64,
  unpadRandomMax16
} from './codec.js'
import type { PhoneRecord } from './records.js'
import type { Table } from './state.js'
import type { Phone } from './types.js'

const MOST_UNUSED_KEYS = 200
const SIGNED_KEY_ID = 1

export type CipherKind = 'pkmsg' | 'msg'

export interface Sealed {
  readonly kind: CipherKind
  readonly bytes: Buffer
}

export function newPhoneRecord(): PhoneRecord {
  const identity = newPair()
  const signed = signedKeyPair(
    { private: unbase64(identity.private), public: unbase64(identity.public) },
    SIGNED_KEY_ID
  )
  return {
    identity,
    registrationId: 1 + Math.floor(Math.random() * 16_000),
    signedPreKey: { id: SIGNED_KEY_ID, pair: keep(signed.keyPair), signature: base64(signed.signature) },
    nextPreKey: 1,
    preKeys: {}
  }
}

export class PhoneDevice {
  readonly #phone: Phone
  readonly #record: PhoneRecord
  readonly #save: () => void
  readonly #store: signal.SignalStorage
  #turn: Promise<unknown> = Promise.resolve()

  constructor(phone: Phone, record: PhoneRecord, sessions: Table<unknown>, save: () => void) {
    this.#phone = phone
    this.#record = record
    this.#save = save
    this.#store = storage(record, sessions, save)
  }

  get identity(): { private: Buffer; public: Buffer } {
    const { identity } = this.#record
    return { private: unbase64(identity.private), public: unbase64(identity.public) }
  }

  get registrationId(): number {
    return this.#record.registrationId
  }

  /** Keys for somebody who wants to write to this phone; the one-time key is given to nobody else. */
  bundle(): Bundle {
    const record = this.#record
    const id = record.nextPreKey++
    const pair = newPair()
    record.preKeys[id] = pair
    for (const old of Object.keys(record.preKeys).slice(0, -MOST_UNUSED_KEYS)) delete record.preKeys[old]
    this.#save()
    const { signedPreKey } = record
    return {
      registrationId: record.registrationId,
      identityKey: unbase64(record.identity.public),
      signedPreKey: {
        id: signedPreKey.id,
        key: unbase64(signedPreKey.pair.public),
        signature: unbase64(signedPreKey.signature)
      },
      preKey: { id, key: unbase64(pair.public) },
      deviceIdentity: null
    }
  }

  /** Throws if this phone cannot read it: unknown session, key already used, damaged bytes. */
  decrypt(from: DeviceAddress, kind: string, bytes: Buffer): Promise<proto.Message> {
    return this.#inTurn(async () => {
      const cipher = this.#cipher(from)
      const plain =
        kind === 'pkmsg' ? await cipher.decryptPreKeyWhisperMessage(bytes) : await cipher.decryptWhisperMessage(bytes)
      return proto.Message.decode(unpadRandomMax16(plain))
    })
  }

  /** `fetchBundle` is asked only if there is no session yet, or if `anew`. */
  encrypt(to: DeviceAddress, message: proto.IMessage, fetchBundle: () => Bundle, anew = false): Promise<Sealed> {
    return this.#inTurn(async () => {
      const session = await this.#store.loadSession(this.#address(to).toString())
      if (anew || !session?.haveOpenSession()) {
        await new signal.SessionBuilder(this.#store, this.#address(to)).initOutgoing(signalBundle(fetchBundle()))
      }
      const { type, body } = await this.#cipher(to).encrypt(encodeWAMessage(message))
      return { kind: type === 3 ? 'pkmsg' : 'msg', bytes: Buffer.from(body, 'binary') }
    })
  }

  #cipher(peer: DeviceAddress): signal.SessionCipher {
    return new signal.SessionCipher(this.#store, this.#address(peer))
  }

  /** libsignal queues by address for the whole process, so the address names both ends. */
  #address(peer: DeviceAddress): signal.ProtocolAddress {
    return new signal.ProtocolAddress(`${this.#phone}<${peer.phone}`, peer.device)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => undefined)
    return result
  }
}

/** Sessions are kept as text and read anew each time: a failed decryption must leave no trace in them. */
function storage(record: PhoneRecord, sessions: Table<unknown>, save: () => void): signal.SignalStorage {
  const pairOf = (pair: KeptPair) => ({
    privKey: unbase64(pair.private),
    pubKey: Buffer.from(generateSignalPubKey(unbase64(pair.public)))
  })
  return {
    loadSession: async id => {
      const kept = sessions.get(id)
      return kept === undefined ? undefined : signal.SessionRecord.deserialize(kept as Uint8Array)
    },
    storeSession: async (id, session) => sessions.set(id, session.serialize()),
    isTrustedIdentity: () => true,
    loadPreKey: async id => {
      const pair = record.preKeys[String(id)]
      return pair && pairOf(pair)
    },
    removePreKey: id => {
      delete record.preKeys[String(id)]
      save()
    },
    loadSignedPreKey: () => pairOf(record.signedPreKey.pair),
    getOurRegistrationId: () => record.registrationId,
    getOurIdentity: () => pairOf(record.identity)
  }
}
