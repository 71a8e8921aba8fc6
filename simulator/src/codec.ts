/**
 * The one door to Baileys and libsignal: binary nodes, protobufs, curves and ciphers.
 * Nothing here knows what a stanza means.
 */

import './silence.js'
import type { BinaryNode, KeyPair } from 'baileys'
import { Curve, generateSignalPubKey, getBinaryNodeChild, getBinaryNodeChildren } from 'baileys'
import { verifySignature } from 'libsignal/src/curve.js'

export type { BinaryNode, KeyPair } from 'baileys'
export {
  aesDecryptCTR,
  aesDecryptGCM,
  aesEncryptCTR,
  aesEncryptGCM,
  Curve,
  decodeBinaryNode,
  derivePairingCodeKey,
  encodeBigEndian,
  encodeBinaryNode,
  encodeWAMessage,
  generateSignalPubKey,
  getBinaryNodeChild as childOf,
  getBinaryNodeChildren as childrenOf,
  hkdf,
  hmacSign,
  jidDecode,
  jidEncode,
  NOISE_MODE,
  NOISE_WA_HEADER,
  proto,
  QueryIds,
  sha256,
  signedKeyPair,
  unpadRandomMax16,
  WA_ADV_ACCOUNT_SIG_PREFIX,
  WA_ADV_DEVICE_SIG_PREFIX
} from 'baileys'
export * as signal from 'libsignal'

/** The address of the server itself. */
export const SERVER = '@s.whatsapp.net'

export function node(tag: string, attrs: Record<string, string> = {}, content?: BinaryNode['content']): BinaryNode {
  return content === undefined ? { tag, attrs } : { tag, attrs, content }
}

/** The bytes inside a child, whether they came as bytes or as text. */
export function bytesOf(parent: BinaryNode | undefined, tag: string): Buffer | undefined {
  const content = getBinaryNodeChild(parent, tag)?.content
  if (content === undefined || Array.isArray(content)) return undefined
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content)
}

export function needBytes(parent: BinaryNode | undefined, tag: string): Buffer {
  const bytes = bytesOf(parent, tag)
  if (bytes === undefined) throw new Error(`The stanza lacks <${tag}>`)
  return bytes
}

export function firstChild(parent: BinaryNode): BinaryNode | undefined {
  return Array.isArray(parent.content) ? parent.content[0] : undefined
}

export function numberOf(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0)
}

export function grandchildren(parent: BinaryNode | undefined, tag: string, child: string): BinaryNode[] {
  return getBinaryNodeChildren(getBinaryNodeChild(parent, tag), child)
}

/** Baileys' own check ignores libsignal's answer; this one does not. */
export function signatureHolds(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    return verifySignature(Buffer.from(generateSignalPubKey(publicKey)), Buffer.from(message), Buffer.from(signature))
  } catch {
    return false
  }
}

/** A key pair as text, for records that are kept. */
export interface KeptPair {
  readonly private: string
  readonly public: string
}

export function keep(pair: KeyPair): KeptPair {
  return { private: base64(pair.private), public: base64(pair.public) }
}

export function newPair(): KeptPair {
  return keep(Curve.generateKeyPair())
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

export function unbase64(text: string): Buffer {
  return Buffer.from(text, 'base64')
}
