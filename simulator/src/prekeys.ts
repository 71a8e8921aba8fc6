/** The keys that companions left with the server. One-time keys are handed out once; then the signed key remains. */

import { type DeviceAddress, keyOf } from './addresses.js'
import { type Bundle, keyIn } from './bundles.js'
import { type BinaryNode, base64, encodeBigEndian, numberOf, unbase64 } from './codec.js'
import type { Records } from './records.js'

/** Below this the client is asked for more; Baileys ignores the question at 5 and above. */
const LOW = 5
// Each key is packed as 3 bytes of id, 32 of key and 1 of padding: 48 characters, of which the first 4 are the id.
const PACKED = 48

export class CompanionKeys {
  readonly #records: Pick<Records, 'companions' | 'oneTimeKeys' | 'handedOut'>
  readonly #onLow: (address: DeviceAddress, left: number) => void

  constructor(
    records: Pick<Records, 'companions' | 'oneTimeKeys' | 'handedOut'>,
    onLow: (address: DeviceAddress, left: number) => void
  ) {
    this.#records = records
    this.#onLow = onLow
  }

  count(address: DeviceAddress): number {
    const key = keyOf(address)
    return (this.#records.oneTimeKeys.get(key) ?? '').length / PACKED - (this.#records.handedOut.get(key) ?? 0)
  }

  upload(address: DeviceAddress, nodes: readonly BinaryNode[]): void {
    const key = keyOf(address)
    const packed = nodes.map(keyIn).map(({ id, key: value }) => {
      return base64(Buffer.concat([encodeBigEndian(id, 3), value, Buffer.alloc(1)]))
    })
    const again = new Set(packed.map(one => one.slice(0, 4)))
    const left = this.#left(key).filter(one => !again.has(one.slice(0, 4)))
    this.#records.oneTimeKeys.set(key, [...left, ...packed].join(''))
    this.#records.handedOut.set(key, 0)
  }

  /** Keys to begin a session with a companion; null if it is not linked any more. */
  take(address: DeviceAddress): Bundle | null {
    const companion = this.#records.companions.get(keyOf(address))
    if (!companion?.linked) return null
    const { id, key, signature } = companion.signedPreKey
    return {
      registrationId: companion.registrationId,
      identityKey: unbase64(companion.identityKey),
      signedPreKey: { id, key: unbase64(key), signature: unbase64(signature) },
      preKey: this.#takeOneTime(address),
      deviceIdentity: unbase64(companion.signedIdentity)
    }
  }

  forget(address: DeviceAddress): void {
    this.#records.oneTimeKeys.delete(keyOf(address))
    this.#records.handedOut.delete(keyOf(address))
  }

  #takeOneTime(address: DeviceAddress): Bundle['preKey'] {
    const left = this.count(address)
    if (left <= 0) return null
    const key = keyOf(address)
    const handed = this.#records.handedOut.get(key) ?? 0
    const bytes = unbase64((this.#records.oneTimeKeys.get(key) ?? '').slice(handed * PACKED, (handed + 1) * PACKED))
    this.#records.handedOut.set(key, handed + 1)
    if (left - 1 < LOW) this.#onLow(address, left - 1)
    return { id: numberOf(bytes.subarray(0, 3)), key: bytes.subarray(3, 35) }
  }

  #left(key: string): string[] {
    const packed = (this.#records.oneTimeKeys.get(key) ?? '').slice((this.#records.handedOut.get(key) ?? 0) * PACKED)
    return packed.match(/.{48}/g) ?? []
  }
}
