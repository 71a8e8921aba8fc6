/** What the simulator keeps of everyone, one table per kind. All of it is plain JSON; bytes are base64. */

import type { Addressing } from './addresses.js'
import type { ServerIdentity } from './certificates.js'
import type { KeptPair } from './codec.js'
import type { Store, Table } from './state.js'
import type { Behaviour, Phone } from './types.js'

/** Somebody who linked a device at least once. */
export interface AccountRecord {
  readonly phone: Phone
  name: string
  banned: boolean
  /** Device numbers are never used twice. */
  lastDevice: number
  /** Until when (ms) the account may not write to strangers. */
  timelockUntil: number
}

/** A linked device: a client of ours, whose private keys the server never sees. */
export interface CompanionRecord {
  readonly phone: Phone
  readonly device: number
  readonly name: string
  readonly noiseKey: string
  readonly identityKey: string
  readonly registrationId: number
  signedPreKey: { id: number; key: string; signature: string }
  /** The identity both sides signed at pairing. */
  readonly signedIdentity: string
  linked: boolean
  logins: number
  historySent: boolean
}

/** The keys of a phone that is simulated here. */
export interface PhoneRecord {
  readonly identity: KeptPair
  readonly registrationId: number
  readonly signedPreKey: { id: number; pair: KeptPair; signature: string }
  nextPreKey: number
  readonly preKeys: Record<string, KeptPair>
}

/** A message on the recipient's phone. */
export interface ShownRecord {
  readonly id: string
  readonly from: Phone
  readonly to: Phone
  readonly text: string
  readonly at: number
  stanzas: number
  delivered: boolean
  read: boolean
  /** How the sender addressed the recipient: receipts must come from the same address. */
  readonly by: Addressing
  /** Nobody sends receipts for it (a fault). */
  readonly quiet: boolean
}

/** A node with its bytes as text. */
export interface KeptNode {
  readonly tag: string
  readonly attrs: Record<string, string>
  readonly children?: readonly KeptNode[]
  readonly bytes?: string
}

/** A stanza that its device has not acknowledged yet. */
export interface WaitingRecord {
  readonly device: string
  readonly stanza: KeptNode
  /** Refusals of the client that belong to an earlier sending of the same message. */
  strayRefusals: number
}

/** What a simulated phone sent, for when the other side asks for it again. */
export interface SentRecord {
  readonly message: string
  readonly attrs: Record<string, string>
}

export interface Records {
  readonly server: Table<ServerIdentity>
  readonly behaviour: Table<Behaviour>
  readonly accounts: Table<AccountRecord>
  readonly companions: Table<CompanionRecord>
  /** One-time keys that companions uploaded, packed; and how many of them were handed out. */
  readonly oneTimeKeys: Table<string>
  readonly handedOut: Table<number>
  readonly phones: Table<PhoneRecord>
  readonly absent: Table<true>
  readonly sessions: Table<unknown>
  readonly shown: Table<ShownRecord>
  readonly retries: Table<number>
  readonly waiting: Table<WaitingRecord>
  readonly sent: Table<SentRecord>
}

export function openRecords(store: Store): Records {
  return {
    server: store.table('server'),
    behaviour: store.table('behaviour'),
    accounts: store.table('accounts'),
    companions: store.table('companions'),
    oneTimeKeys: store.table('oneTimeKeys'),
    handedOut: store.table('handedOut'),
    phones: store.table('phones'),
    absent: store.table('absent'),
    sessions: store.table('sessions'),
    shown: store.table('shown'),
    retries: store.table('retries'),
    waiting: store.table('waiting'),
    sent: store.table('sent')
  }
}
