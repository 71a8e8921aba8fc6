/**
 * The simulator's own certificate authority, so that clients keep checking TLS: they trust `ca.pem` by
 * NODE_EXTRA_CA_CERTS and nothing is switched off. Made once for a data folder and kept.
 */
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import 'reflect-metadata'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate as SignedCertificate,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator
} from '@peculiar/x509'

export const SERVER_NAMES = ['web.whatsapp.com', '*.whatsapp.com', '*.whatsapp.net', 'mmg.whatsapp.net', 'localhost']

const DAY_MS = 24 * 60 * 60 * 1000
const CA_DAYS = 3650
const SERVER_DAYS = 365
const RENEW_DAYS = 30
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

export interface Identity {
  readonly key: string
  readonly cert: string
}

export interface TlsIdentity extends Identity {
  /** The file for NODE_EXTRA_CA_CERTS. */
  readonly caFile: string
}

/** Reads the folder's authority and server certificate, and makes what is missing, broken or about to run out. */
export async function ensureTls(dir: string, now = Date.now()): Promise<TlsIdentity> {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const caFile = join(dir, 'ca.pem')
  const ca = readIdentity(dir, 'ca', now) ?? keepIdentity(dir, 'ca', await makeAuthority(now))
  const kept = readIdentity(dir, 'server', now)
  if (kept !== null && new X509Certificate(kept.cert).verify(new X509Certificate(ca.cert).publicKey)) {
    return { ...kept, caFile }
  }
  return { ...keepIdentity(dir, 'server', await makeServer(ca, now)), caFile }
}

async function makeAuthority(now: number): Promise<Identity> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const cert = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serial(),
      name: 'CN=Simulated WhatsApp authority, O=Switchboard simulator',
      notBefore: new Date(now - DAY_MS),
      notAfter: new Date(now + CA_DAYS * DAY_MS),
      signingAlgorithm: ALGORITHM,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto)
      ]
    },
    webcrypto
  )
  return { key: await exportKey(keys.privateKey), cert: cert.toString('pem') }
}

async function makeServer(ca: Identity, now: number): Promise<Identity> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const authority = new SignedCertificate(ca.cert)
  const cert = await X509CertificateGenerator.create(
    {
      serialNumber: serial(),
      subject: 'CN=web.whatsapp.com, O=Switchboard simulator',
      issuer: authority.subject,
      notBefore: new Date(now - DAY_MS),
      notAfter: new Date(now + SERVER_DAYS * DAY_MS),
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: await importKey(ca.key),
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension([
          ...SERVER_NAMES.map(value => ({ type: 'dns' as const, value })),
          { type: 'ip', value: '127.0.0.1' }
        ]),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        await AuthorityKeyIdentifierExtension.create(authority, false, webcrypto)
      ]
    },
    webcrypto
  )
  return { key: await exportKey(keys.privateKey), cert: cert.toString('pem') }
}

/** Null if it is missing, does not fit together, or has less than RENEW_DAYS left: then it is made anew. */
function readIdentity(dir: string, name: string, now: number): Identity | null {
  const files = { key: join(dir, `${name}.key`), cert: join(dir, `${name}.pem`) }
  if (!existsSync(files.key) || !existsSync(files.cert)) return null
  const identity = { key: readFileSync(files.key, 'utf8'), cert: readFileSync(files.cert, 'utf8') }
  try {
    const cert = new X509Certificate(identity.cert)
    const lasts = Date.parse(cert.validTo) - now > RENEW_DAYS * DAY_MS
    return lasts && cert.checkPrivateKey(createPrivateKey(identity.key)) ? identity : null
  } catch {
    // Half-written or damaged files can't be used by anyone, so nothing is lost with them.
    return null
  }
}

function keepIdentity(dir: string, name: string, identity: Identity): Identity {
  writeWhole(join(dir, `${name}.key`), identity.key, 0o600)
  writeWhole(join(dir, `${name}.pem`), identity.cert, 0o644)
  return identity
}

function writeWhole(file: string, text: string, mode: number): void {
  writeFileSync(`${file}.new`, text, { mode })
  renameSync(`${file}.new`, file)
}

function serial(): string {
  // A first digit below 8 keeps the number positive in DER.
  return `5${randomBytes(8).toString('hex').slice(1)}`
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const body = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${body.replace(/.{1,64}/g, '$&\n')}-----END PRIVATE KEY-----\n`
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' })
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign'])
}
