/**
 * One connection to WhatsApp, from dialling to its end. The only file that imports Baileys; what it learns of the
 * library's ways stays in here. Deciding what follows is link.ts' business.
 */
import './silent_console.js'
import type { Agent } from 'node:https'
import {
  type AuthenticationCreds,
  addTransactionCapability,
  DEFAULT_CONNECTION_CONFIG,
  encodeWAMessage,
  initAuthCreds,
  makeWASocket,
  normalizeMessageContent,
  proto,
  type SignalDataSet,
  type SignalKeyStore,
  type SignalRepositoryWithLIDStore,
  USyncQuery,
  USyncUser,
  unpadRandomMax16
} from 'baileys'
import type { AuthStore } from './auth_store.js'
import type { EndingError } from './endings.js'
import type { Inbox } from './inbox.js'
import { isPerson, type Letter, letterIn, phoneOf, type Stanza, userOf } from './stanzas.js'
import type { Phone } from './types.js'
import { type Content, wordsOf } from './words.js'

/** Short, so that a whole attempt fits into its lease. */
const QUERY_MS = 12_000
const SENT = 'sent'
const SENT_LIMIT = 500

export interface Me {
  readonly phone: Phone
  readonly address: string
}

/** What happens on the connection. Each is called at once, before the library goes on. */
export interface Hooks {
  /** Every stanza, before the library looks at it. */
  stanza(stanza: Stanza): void
  qr(code: string): void
  open(me: Me): void
  ended(error: EndingError): void
}

export interface ConnectOptions {
  readonly store: AuthStore
  readonly inbox: Inbox
  readonly agent: Agent | undefined
  readonly deviceName: string
  readonly online: boolean
  readonly hooks: Hooks
  /** What is kept on disk can't be written any more: nothing may go out from now on. */
  readonly broken: (error: unknown) => void
}

export interface Connection {
  /** The user parts of our own addresses, number and LID. */
  readonly me: readonly (string | null)[]
  /** The address to write to, null if the number is not on WhatsApp, undefined if nobody answered. */
  find(phone: Phone): Promise<string | null | undefined>
  typing(address: string, on: boolean): Promise<void>
  /** Resolves once it is on the wire: whether any device of the recipient can read it. */
  send(address: string, id: string, text: string): Promise<boolean>
  /** When the restriction of this account ends, if WhatsApp says so. */
  restrictedUntil(): Promise<number | null>
  requestPairingCode(phone: Phone): Promise<string>
  /** Rejects unless WhatsApp says that it is done. It may hang up instead, for the very same reason. */
  unlink(): Promise<void>
  beHere(): Promise<void>
  deliverInbox(): Promise<void>
  hangUp(): void
}

export const isLinked = (store: AuthStore): boolean =>
  (store.readCreds() as Partial<AuthenticationCreds>)?.account !== undefined

/**
 * A kill right after the scan can leave a link that we know of and WhatsApp does not. It shows at the first login, which
 * such a link never got through: no keys were ever uploaded. Then all begins anew, with a QR code. Answers whether it was so.
 */
export function forgetHalfLink(store: AuthStore, broken: (error: unknown) => void): boolean {
  const creds = store.readCreds() as Partial<AuthenticationCreds> | undefined
  if (creds?.account === undefined || creds.firstUnuploadedPreKeyId !== 1) return false
  store.writeCreds(initAuthCreds()).catch(broken)
  return true
}

export function connect(options: ConnectOptions): Connection {
  const { store, inbox, hooks, broken } = options
  store.keepNewest(SENT, SENT_LIMIT)
  const creds = credentials(store)
  let over = false
  const keys = keyStore(store, () => over, broken)
  const me = (): (string | null)[] => [userOf(creds.me?.id), userOf(creds.me?.lid)]
  const signal = new Signal(keys, inbox, me, broken)

  const socket = makeWASocket({
    auth: { creds, keys },
    browser: [options.deviceName, 'Chrome', '22.04.4'],
    logger: QUIET,
    ...(options.agent === undefined ? {} : { agent: options.agent, fetchAgent: options.agent }),
    defaultQueryTimeoutMs: QUERY_MS,
    markOnlineOnConnect: options.online,
    syncFullHistory: false,
    generateHighQualityLinkPreview: false,
    // Groups, channels and status updates are none of our business: acknowledged, and not even decrypted.
    shouldIgnoreJid: address => address.includes('@') && !isPerson(address) && !address.endsWith('@s.whatsapp.net'),
    // The phone of a recipient could not read a message and asks for it again, maybe after our restart.
    getMessage: async key => {
      const text = store.get(SENT, [key.id ?? ''])[key.id ?? '']
      return typeof text === 'string' ? { extendedTextMessage: { text } } : undefined
    },
    transactionOpts: { maxCommitRetries: 1, delayBetweenTriesMs: 0 },
    makeSignalRepository: signal.repository
  })

  socket.ev.on('creds.update', () => {
    if (!over) store.writeCreds(creds).catch(broken)
  })
  socket.ev.on('connection.update', update => {
    if (update.qr !== undefined) hooks.qr(update.qr)
    if (update.connection === 'open') hooks.open({ phone: userOf(creds.me?.id) ?? '', address: creds.me?.id ?? '' })
    if (update.connection !== 'close') return
    over = true
    hooks.ended(endingOf(update.lastDisconnect?.error))
  })
  // What could not be decrypted here, or came without content, and our own phone was asked for. Taken from the phone's answer
  // itself: the library shows the message too, but by then its buffer has dropped the sign that it is one of these.
  socket.ev.on('messages.upsert', ({ messages }) => {
    for (const { key, message, messageTimestamp } of messages.filter(({ key }) => key.fromMe).flatMap(resentIn)) {
      const { id, remoteJid: from } = key ?? {}
      const attrs = { id, from, t: String(messageTimestamp), offline: '1' } as Stanza['attrs']
      const letter = key?.fromMe ? null : letterIn({ tag: 'message', attrs }, me(), Date.now())
      const text = message && textOf(message)
      if (letter && text != null) inbox.receive(letter, text, signal.phoneFor).catch(broken)
    }
  })
  socket.ws.on('frame', (frame: unknown) => {
    if (frame instanceof Uint8Array) return
    signal.expect(frame as Stanza)
    hooks.stanza(frame as Stanza)
  })
  // Without this an HTTP error on the upgrade would leave us waiting for ever.
  socket.ws.on('unexpected-response', (_request: unknown, response: { statusCode?: number }) => {
    void socket.end(new Error(`HTTP ${response.statusCode ?? 0} on the upgrade`))
  })

  return {
    get me() {
      return me()
    },
    async find(phone) {
      // Not the library's onWhatsApp: it takes an answer that says nothing for one that says no.
      const question = new USyncQuery().withContactProtocol().withUser(new USyncUser().withPhone(`+${phone}`))
      const [found] = (await socket.executeUSyncQuery(question))?.list ?? []
      if (found === undefined || typeof found['contact'] !== 'boolean') return undefined
      return found['contact'] ? found.id : null
    },
    typing: (address, on) => socket.sendPresenceUpdate(on ? 'composing' : 'paused', address),
    async send(address, id, text) {
      await store.set({ [SENT]: { [id]: text } })
      return signal.watch(address, () => socket.sendMessage(address, { text, linkPreview: null }, { messageId: id }))
    },
    async restrictedUntil() {
      const { isActive, timeEnforcementEnds } = await socket.fetchAccountReachoutTimelock()
      return isActive && timeEnforcementEnds !== undefined ? timeEnforcementEnds.getTime() : null
    },
    requestPairingCode: phone => socket.requestPairingCode(phone),
    async unlink() {
      const device = { tag: 'remove-companion-device', attrs: { jid: creds.me?.id ?? '', reason: 'user_initiated' } }
      const attrs = { to: '@s.whatsapp.net', type: 'set', xmlns: 'md' }
      const answer: unknown = await socket.query({ tag: 'iq', attrs, content: [device] })
      if (answer === undefined) throw new Error('WhatsApp did not say that the device is unlinked')
    },
    beHere: () => socket.sendPresenceUpdate('available'),
    deliverInbox: () => inbox.deliver(signal.phoneFor),
    hangUp() {
      over = true
      void socket.end(undefined)
      // The library waits up to 30 s for the other side to say goodbye.
      ;(socket.ws as unknown as { socket: { terminate(): void } | null }).socket?.terminate()
    }
  }
}

/**
 * Signal's keys, with three things put right. The library sends a message inside the transaction whose commit would write
 * down that its key is used up: a kill in between and the next message would use that key again, which no phone can
 * read. It tells WhatsApp "received" before anyone has seen the message. And it lets sessions change side by side. Here
 * every use of a key is on the disk before its result goes anywhere: the repository has transactions of its own, which end
 * when the use does, one at a time.
 */
class Signal {
  readonly #keys: ReturnType<typeof addTransactionCapability>
  readonly #inbox: Inbox
  readonly #me: () => (string | null)[]
  readonly #broken: (error: unknown) => void
  /** Of messages that are not decrypted yet, by the bytes of the ciphertext itself. */
  readonly #letters = new WeakMap<object, Letter>()
  #lidMapping: SignalRepositoryWithLIDStore['lidMapping'] | undefined
  #turn: Promise<unknown> = Promise.resolve()
  /** The devices that the message being sent was encrypted for. */
  #addressed = new Set<string>()

  constructor(keys: SignalKeyStore, inbox: Inbox, me: () => (string | null)[], broken: (error: unknown) => void) {
    this.#broken = broken
    this.#keys = addTransactionCapability(keys, QUIET, { maxCommitRetries: 1, delayBetweenTriesMs: 0 })
    this.#inbox = inbox
    this.#me = me
  }

  expect(stanza: Stanza): void {
    const letter = letterIn(stanza, this.#me(), Date.now())
    if (letter === null || !Array.isArray(stanza.content)) return
    for (const child of stanza.content as Stanza[]) {
      if (child.tag === 'enc' && child.content instanceof Uint8Array) this.#letters.set(child.content, letter)
    }
  }

  /** Whether the message was encrypted for somebody else's phone than our own (or is meant for ourselves). */
  async watch(address: string, send: () => Promise<unknown>): Promise<boolean> {
    this.#addressed = new Set()
    await send()
    const me = this.#me()
    const phones = [...this.#addressed].filter(device => /^\d+@/.test(device))
    return me.includes(userOf(address)) || phones.some(phone => !me.includes(userOf(phone)))
  }

  readonly phoneFor = async (address: string): Promise<Phone | null> =>
    phoneOf(address) ?? phoneOf((await this.#lidMapping?.getPNForLID(address)) ?? undefined)

  readonly repository: typeof DEFAULT_CONNECTION_CONFIG.makeSignalRepository = (auth, logger, lids) => {
    const inner = DEFAULT_CONNECTION_CONFIG.makeSignalRepository({ creds: auth.creds, keys: this.#keys }, logger, lids)
    this.#lidMapping = inner.lidMapping
    this.#deliverOnceKnown(inner.lidMapping)
    return {
      ...inner,
      encryptMessage: async to => {
        const encrypted = await this.#inTurn(() => inner.encryptMessage(to))
        this.#addressed.add(to.jid)
        return encrypted
      },
      decryptMessage: async from => {
        const letter = this.#letters.get(from.ciphertext)
        if (letter === undefined) return this.#inTurn(() => inner.decryptMessage(from))
        if (this.#inbox.knows(letter)) return encodeWAMessage({})
        const plain = await this.#inTurn(() =>
          this.#keys.transaction(() => this.#open(letter, inner.decryptMessage(from)), from.jid)
        )
        await this.#inbox.deliver(this.phoneFor)
        return plain
      },
      injectE2ESession: session => this.#inTurn(() => inner.injectE2ESession(session)),
      migrateSession: (from, to) => this.#inTurn(() => inner.migrateSession(from, to)),
      deleteSession: addresses => this.#inTurn(() => inner.deleteSession(addresses))
    }
  }

  /**
   * One change of a session at a time. The library takes turns by address, and one person has two, a number and a LID: of a
   * message that leaves and one that arrives at the same moment, the one written down last would undo the other's use of a key.
   */
  #inTurn<Result>(change: () => Promise<Result>): Promise<Result> {
    const changed = this.#turn.then(change)
    this.#turn = changed.catch(() => undefined)
    return changed
  }

  /**
   * A number that becomes known may be the one that a letter waits for. The library learns numbers before it decrypts, once for
   * each message and side by side: one after the other here, so that no message overtakes the one before it.
   */
  #deliverOnceKnown(mapping: SignalRepositoryWithLIDStore['lidMapping']): void {
    const store = mapping.storeLIDPNMappings.bind(mapping)
    let last: Promise<unknown> = Promise.resolve()
    mapping.storeLIDPNMappings = pairs => {
      const stored = last.then(() => store(pairs))
      last = stored.catch(() => undefined)
      stored.then(
        () => this.#inbox.deliver(this.phoneFor).catch(this.#broken),
        () => undefined
      )
      return stored
    }
  }

  async #open(letter: Letter, decrypting: Promise<Uint8Array>): Promise<Uint8Array> {
    const plain = await decrypting
    const text = textOf(proto.Message.decode(unpadRandomMax16(plain)))
    // The library's types know only its own kinds of keys; the store takes any.
    if (text !== null) await this.#keys.set(this.#inbox.entry(letter, text) as SignalDataSet)
    return plain
  }
}

function credentials(store: AuthStore): AuthenticationCreds {
  const kept = store.readCreds() as AuthenticationCreds | undefined
  const creds = kept ?? initAuthCreds()
  // A pairing code that was asked for and never typed leaves a name behind, and the library would log in with it.
  if (creds.account === undefined) {
    delete creds.me
    creds.pairingCode = undefined
    creds.registered = false
  }
  return creds
}

/** Messages that our own phone hands over because we asked for them. */
function resentIn({ message }: proto.IWebMessageInfo): proto.IWebMessageInfo[] {
  const results = message?.protocolMessage?.peerDataOperationRequestResponseMessage?.peerDataOperationResult ?? []
  return results.flatMap(({ placeholderMessageResendResponse: resent }) =>
    resent?.webMessageInfoBytes ? [proto.WebMessageInfo.decode(resent.webMessageInfoBytes)] : []
  )
}

const textOf = (message: proto.IMessage): string | null =>
  wordsOf(normalizeMessageContent(message) as Content | undefined)

/**
 * A connection that is over writes nothing any more: the library may still be at work on it, and would put keys in the place
 * of those that the next connection has told WhatsApp about.
 */
function keyStore(store: AuthStore, isOver: () => boolean, broken: (error: unknown) => void): SignalKeyStore {
  return {
    get: (type, ids) => {
      const found = store.get(type, ids)
      if (type === 'app-state-sync-key') {
        for (const [id, value] of Object.entries(found)) {
          found[id] = proto.Message.AppStateSyncKeyData.fromObject(value as Record<string, unknown>)
        }
      }
      return found as never
    },
    set: async changes => {
      if (isOver()) throw new Error('this connection is over')
      try {
        await store.set(changes as Record<string, Record<string, unknown>>)
      } catch (error) {
        broken(error)
        throw error
      }
    }
  }
}

function endingOf(error: unknown): EndingError {
  const boom = error as { message?: unknown; data?: unknown; output?: { statusCode?: unknown } } | undefined
  const code = boom?.output?.statusCode
  return { message: String(boom?.message ?? ''), code: typeof code === 'number' ? code : null, data: boom?.data }
}

const nothing = (): void => {}
/** The library logs keys and texts. We have our own words (log.ts). */
const QUIET = {
  level: 'silent',
  child: () => QUIET,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing
}
