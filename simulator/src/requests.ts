/**
 * What clients ask (`<iq>`) and what the server answers: one handler per `xmlns:type:child`. A request without a handler
 * gets an empty result, and all are counted.
 */

import { createHash } from 'node:crypto'
import type { Accounts } from './accounts.js'
import { addressOf } from './addresses.js'
import { bundleNodes, signedKeyIn } from './bundles.js'
import {
  type BinaryNode,
  base64,
  childOf,
  childrenOf,
  encodeBigEndian,
  firstChild,
  grandchildren,
  node,
  SERVER,
  unbase64
} from './codec.js'
import type { Connection } from './connection.js'
import type { Delivery } from './delivery.js'
import { RequestError } from './errors.js'
import type { Faults } from './faults.js'
import type { LinkCodes } from './linkcode.js'
import { answerMex } from './mex.js'
import type { Pairing } from './pairing.js'
import type { Phones } from './phones.js'
import type { CompanionKeys } from './prekeys.js'
import type { CompanionRecord } from './records.js'
import { answerUsync } from './usync.js'

const SLOW_MS = 1000
const MEDIA_HOST = 'mmg.whatsapp.net'
const PRIVACY = ['readreceipts', 'last', 'online', 'profile', 'status', 'groupadd', 'calladd']

export interface RequestParts {
  readonly accounts: Accounts
  readonly delivery: Delivery
  readonly faults: Faults
  readonly keys: CompanionKeys
  readonly linkCodes: LinkCodes
  readonly pairing: Pairing
  readonly phones: Phones
  readonly clock: () => number
  /** A device logs itself out. */
  readonly onLogOut: (companion: CompanionRecord) => void
  /** A device is ready to take stanzas for the first time. */
  readonly onReady: (companion: CompanionRecord) => void
}

interface Answer {
  readonly content?: BinaryNode[]
  /** What to do once the client has its answer. */
  readonly afterwards?: () => void
}

type Handler = (from: Asker, iq: BinaryNode, child: BinaryNode | undefined) => Answer

interface Asker {
  readonly connection: Connection
  /** The linked device that asks; throws for a client that is not logged in. */
  companion(): CompanionRecord
}

export class Requests {
  readonly #parts: RequestParts
  readonly #counts = new Map<string, number>()
  readonly #handlers: Readonly<Record<string, Handler>>

  constructor(parts: RequestParts) {
    this.#parts = parts
    this.#handlers = { ...keyHandlers(parts), ...deviceHandlers(parts), ...accountHandlers(parts) }
  }

  counts(): Record<string, number> {
    return Object.fromEntries(this.#counts)
  }

  count(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  take(connection: Connection, iq: BinaryNode): void {
    const child = firstChild(iq)
    if (iq.attrs['type'] === 'result' || iq.attrs['type'] === 'error') {
      this.#takeAnswer(connection, iq, child)
      return
    }
    const name = `${iq.attrs['xmlns']}:${iq.attrs['type'] ?? '-'}:${child?.tag ?? '-'}`
    this.count(name)
    const phone = connection.address?.phone ?? null
    if (this.#parts.faults.strike('mute', phone, name)) return
    const slow = this.#parts.faults.strike('slow', phone, name)
    const answer = this.#answer(connection, iq, child, name)
    const reply = () => {
      connection.send(answer.stanza)
      answer.afterwards?.()
    }
    if (slow) setTimeout(reply, slow.ms ?? SLOW_MS).unref()
    else reply()
  }

  /** The client answers a request of the server: only pairing asks anything. */
  #takeAnswer(connection: Connection, iq: BinaryNode, child: BinaryNode | undefined): void {
    this.count(child ? `result:${child.tag}` : 'result')
    const expecting = this.#parts.pairing.of(connection)?.expecting
    if (child && expecting?.what === child.tag) expecting.resolve(iq)
  }

  #answer(connection: Connection, iq: BinaryNode, child: BinaryNode | undefined, name: string) {
    const attrs = { from: SERVER, id: iq.attrs['id'] ?? '' }
    const asker = {
      connection,
      companion: () => {
        const companion = connection.address && this.#parts.accounts.companion(connection.address)
        if (!companion) throw new RequestError(401, 'not-authorized')
        return companion
      }
    }
    try {
      const answer = this.#handlers[name]?.(asker, iq, child) ?? {}
      return { stanza: node('iq', { ...attrs, type: 'result' }, answer.content), afterwards: answer.afterwards }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      const reason = node('error', { code: String(error.code), text: error.message })
      return { stanza: node('iq', { ...attrs, type: 'error' }, [reason]), afterwards: undefined }
    }
  }
}

/** Keys: those the asker left here, and those of people it wants to write to. */
function keyHandlers({ accounts, faults, keys, phones }: RequestParts): Record<string, Handler> {
  return {
    'encrypt:get:count': from => ({ content: [node('count', { value: String(keys.count(from.companion())) })] }),
    'encrypt:set:registration': (from, iq) => {
      const companion = from.companion()
      const skey = childOf(iq, 'skey')
      if (skey) rotate(companion, skey, accounts)
      keys.upload(companion, grandchildren(iq, 'list', 'key'))
      return {}
    },
    'encrypt:set:rotate': (from, _iq, child) => {
      const skey = childOf(child, 'skey')
      if (!skey) throw new RequestError(400, 'bad-request')
      rotate(from.companion(), skey, accounts)
      return {}
    },
    'encrypt:get:digest': from => ({ content: [digestOf(from.companion())] }),
    'encrypt:get:key': (from, _iq, child) => {
      const asker = from.companion().phone
      const nobody = faults.strike('no_prekeys', asker) !== null
      const users = childrenOf(child, 'user').map(user => {
        const jid = user.attrs['jid'] ?? ''
        const address = addressOf(jid)
        if (!address || phones.isAbsent(address.phone) || (nobody && address.phone !== asker)) return notFound(jid)
        const bundle = address.device === 0 ? phones.of(address.phone).bundle() : keys.take(address)
        return bundle ? node('user', { jid }, bundleNodes(bundle)) : notFound(jid)
      })
      return { content: [node('list', {}, users)] }
    }
  }
}

/** Linking, logging out, and the moment when a device is ready. */
function deviceHandlers({ delivery, linkCodes, onLogOut, onReady }: RequestParts): Record<string, Handler> {
  return {
    'md:set:link_code_companion_reg': (from, _iq, child) => {
      if (!child) throw new RequestError(400, 'bad-request')
      if (child.attrs['stage'] === 'companion_hello') return { content: linkCodes.hello(from.connection, child) }
      return { afterwards: linkCodes.finish(from.connection, child) }
    },
    'md:set:remove-companion-device': from => {
      const companion = from.companion()
      return { afterwards: () => onLogOut(companion) }
    },
    'passive:set:active': from => {
      const companion = from.companion()
      return {
        afterwards: () => {
          delivery.begin(companion)
          onReady(companion)
        }
      }
    }
  }
}

function accountHandlers({ accounts, clock, phones }: RequestParts): Record<string, Handler> {
  return {
    'usync:get:usync': (_from, _iq, child) => ({ content: child ? answerUsync(child, accounts, phones) : [] }),
    'w:mex:get:query': (from, _iq, child) => {
      return { content: answerMex(child, accounts.need(from.companion().phone), clock()) }
    },
    'abt:get:props': () => ({ content: [node('props', { hash: 'sim', refresh: '86400' }, [])] }),
    'blocklist:get:-': () => ({ content: [node('list', { dhash: 'none' }, [])] }),
    'privacy:get:privacy': () => {
      const all = PRIVACY.map(name => node('category', { name, value: 'all' }))
      return { content: [node('privacy', {}, all)] }
    },
    'w:m:set:media_conn': () => {
      const attrs = { auth: 'sim', ttl: '3600', auth_ttl: '3600', max_buckets: '12' }
      return { content: [node('media_conn', attrs, [node('host', { hostname: MEDIA_HOST, type: 'primary' })])] }
    },
    'w:sync:app:state:set:sync': (_from, _iq, child) => {
      const collections = childrenOf(child, 'collection').map(({ attrs }) => {
        return node('collection', { name: attrs['name'] ?? '', version: attrs['version'] ?? '0' }, [])
      })
      return { content: [node('sync', {}, collections)] }
    }
  }
}

function rotate(companion: CompanionRecord, skey: BinaryNode, accounts: Accounts): void {
  const { id, key, signature } = signedKeyIn(skey)
  companion.signedPreKey = { id, key: base64(key), signature: base64(signature) }
  accounts.saveCompanion(companion)
}

function digestOf(companion: CompanionRecord): BinaryNode {
  const identity = unbase64(companion.identityKey)
  const key = unbase64(companion.signedPreKey.key)
  return node('digest', {}, [
    node('registration', {}, encodeBigEndian(companion.registrationId)),
    node('type', {}, Buffer.from([5])),
    node('identity', {}, identity),
    node('hash', {}, createHash('sha1').update(identity).update(key).digest())
  ])
}

function notFound(jid: string): BinaryNode {
  return node('user', { jid }, [node('error', { code: '404', text: 'item-not-found' })])
}
