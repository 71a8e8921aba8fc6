/** The keys the server proves itself with in the Noise handshake: root, intermediate and leaf. */

import { base64, Curve, type KeptPair, keep, proto, unbase64 } from './codec.js'

/** What is kept, so that a restarted server is the same server. */
export interface ServerIdentity {
  readonly static: KeptPair
  readonly chain: string
}

const ROOT_SERIAL = 0
const YEAR_SECONDS = 365 * 86_400

export function newServerIdentity(now: number): ServerIdentity {
  const root = Curve.generateKeyPair()
  const intermediate = Curve.generateKeyPair()
  const leaf = Curve.generateKeyPair()
  const sign = (issuer: Uint8Array, serial: number, issuerSerial: number, key: Uint8Array) => {
    const seconds = Math.floor(now / 1000)
    const details = proto.CertChain.NoiseCertificate.Details.encode({
      serial,
      issuerSerial,
      key,
      notBefore: seconds - 3600,
      notAfter: seconds + 10 * YEAR_SECONDS
    }).finish()
    return { details, signature: Curve.sign(issuer, details) }
  }
  const chain = proto.CertChain.encode({
    intermediate: sign(root.private, 1, ROOT_SERIAL, intermediate.public),
    leaf: sign(intermediate.private, 2, 1, leaf.public)
  }).finish()
  return { static: keep(leaf), chain: base64(chain) }
}

export function staticKeys(identity: ServerIdentity): { private: Buffer; public: Buffer } {
  return { private: unbase64(identity.static.private), public: unbase64(identity.static.public) }
}
