/** The public keys one device needs to write to another for the first time, and how they look on the wire. */

import {
  type BinaryNode,
  bytesOf,
  childOf,
  encodeBigEndian,
  generateSignalPubKey,
  needBytes,
  node,
  numberOf
} from './codec.js'

export interface PublicKey {
  readonly id: number
  readonly key: Uint8Array
}

export interface Bundle {
  readonly registrationId: number
  readonly identityKey: Uint8Array
  readonly signedPreKey: PublicKey & { readonly signature: Uint8Array }
  /** Null when all one-time keys are used up: a session can still begin with the signed key alone. */
  readonly preKey: PublicKey | null
  /** Of companions: the identity their phone signed. */
  readonly deviceIdentity: Uint8Array | null
}

/** The shape libsignal wants; its types claim that the one-time key is always there. */
export interface SignalBundle {
  registrationId: number
  identityKey: Buffer
  signedPreKey: { keyId: number; publicKey: Buffer; signature: Buffer }
  preKey: { keyId: number; publicKey: Buffer }
}

export function signalBundle(bundle: Bundle): SignalBundle {
  const prefixed = (key: Uint8Array) => Buffer.from(generateSignalPubKey(key))
  const { id, key, signature } = bundle.signedPreKey
  return {
    registrationId: bundle.registrationId,
    identityKey: prefixed(bundle.identityKey),
    signedPreKey: { keyId: id, publicKey: prefixed(key), signature: Buffer.from(signature) },
    ...(bundle.preKey ? { preKey: { keyId: bundle.preKey.id, publicKey: prefixed(bundle.preKey.key) } } : {})
  } as SignalBundle
}

/** What stands inside `<user>` in the answer to a request for keys. */
export function bundleNodes(bundle: Bundle): BinaryNode[] {
  return [
    node('registration', {}, encodeBigEndian(bundle.registrationId)),
    node('type', {}, Buffer.from([5])),
    node('identity', {}, bundle.identityKey),
    ...keyNodes(bundle)
  ]
}

/** What stands inside `<keys>` of a retry receipt, which says the registration outside of it. */
export function retryKeyNodes(bundle: Bundle): BinaryNode[] {
  return [node('type', {}, Buffer.from([5])), node('identity', {}, bundle.identityKey), ...keyNodes(bundle)]
}

/** The bundle in a retry receipt of a client; null if it brought none. */
export function bundleInRetry(receipt: BinaryNode): Bundle | null {
  const keys = childOf(receipt, 'keys')
  const skey = childOf(keys, 'skey')
  if (!keys || !skey) return null
  const one = childOf(keys, 'key')
  return {
    registrationId: numberOf(needBytes(receipt, 'registration')),
    identityKey: needBytes(keys, 'identity'),
    signedPreKey: signedKeyIn(skey),
    preKey: one ? keyIn(one) : null,
    deviceIdentity: bytesOf(keys, 'device-identity') ?? null
  }
}

export function keyIn(parent: BinaryNode): PublicKey {
  return { id: numberOf(needBytes(parent, 'id')), key: needBytes(parent, 'value') }
}

export function signedKeyIn(skey: BinaryNode): Bundle['signedPreKey'] {
  return { ...keyIn(skey), signature: needBytes(skey, 'signature') }
}

function keyNodes(bundle: Bundle): BinaryNode[] {
  const { id, key, signature } = bundle.signedPreKey
  const nodes = [
    node('skey', {}, [node('id', {}, encodeBigEndian(id, 3)), node('value', {}, key), node('signature', {}, signature)])
  ]
  if (bundle.preKey) {
    const { id: oneTime, key: value } = bundle.preKey
    nodes.unshift(node('key', {}, [node('id', {}, encodeBigEndian(oneTime, 3)), node('value', {}, value)]))
  }
  if (bundle.deviceIdentity) nodes.push(node('device-identity', {}, bundle.deviceIdentity))
  return nodes
}
