/**
 * Stanzas for linked devices. Each is kept until its device acknowledged it and comes again, the same bytes, at the next
 * login if it did not.
 */

import { type DeviceAddress, keyOf } from './addresses.js'
import { type BinaryNode, base64, node, SERVER, unbase64 } from './codec.js'
import type { Lines } from './lines.js'
import type { KeptNode, Records, WaitingRecord } from './records.js'

/** A device that never comes back must not fill the memory: beyond this its oldest stanzas are forgotten. */
const MOST_WAITING = 5000

/** What a client's ack or receipt says about a stanza it got. */
export interface Acknowledged {
  readonly kind: 'message' | 'receipt' | 'notification'
  readonly id: string
  readonly type?: string | undefined
  /** Whose stanza it was, as the client writes it. */
  readonly to?: string | undefined
  readonly refused?: boolean
}

export class Delivery {
  readonly #table: Records['waiting']
  readonly #lines: Lines
  readonly #queues = new Map<string, Map<string, WaitingRecord>>()
  #last = 0

  constructor(table: Records['waiting'], lines: Lines) {
    this.#table = table
    this.#lines = lines
    for (const [key, record] of table.entries()) {
      this.#queue(record.device).set(key, record)
      this.#last = Math.max(this.#last, Number(key))
    }
  }

  waiting(address: DeviceAddress): number {
    return this.#queues.get(keyOf(address))?.size ?? 0
  }

  post(address: DeviceAddress, stanza: BinaryNode): void {
    const device = keyOf(address)
    const key = String(++this.#last)
    const record = { device, stanza: kept(stanza), strayRefusals: 0 }
    const queue = this.#queue(device)
    queue.set(key, record)
    this.#table.set(key, record)
    for (const old of queue.keys()) {
      if (queue.size <= MOST_WAITING) break
      this.#remove(queue, old)
    }
    const line = this.#lines.of(address)
    if (line?.ready) line.send(stanza)
  }

  /** The device takes stanzas now: first all that waited, then the word that this was all, then what comes from its phone. */
  begin(address: DeviceAddress): void {
    const line = this.#lines.of(address)
    if (!line || line.ready) return
    line.ready = true
    const stanzas = [...this.#queue(keyOf(address)).values()].map(record => {
      record.strayRefusals = 0
      return restored(record.stanza)
    })
    // A client that waits for its history looks for it only after everything else that waited.
    const late = stanzas.filter(stanza => stanza.attrs['category'] === 'peer')
    const offline = stanzas.filter(stanza => stanza.attrs['category'] !== 'peer')
    for (const stanza of offline) line.send({ ...stanza, attrs: { ...stanza.attrs, offline: '0' } })
    line.send(node('ib', { from: SERVER }, [node('offline', { count: String(offline.length) })]))
    for (const stanza of late) line.send(stanza)
  }

  /** Answers the stanza that needs no keeping any more, or null if none was meant. */
  settle(address: DeviceAddress, what: Acknowledged): BinaryNode | null {
    const queue = this.#queue(keyOf(address))
    const found = this.#find(queue, what)
    if (!found) return null
    const [key, record] = found
    if (what.refused && record.strayRefusals > 0) {
      record.strayRefusals -= 1
      return null
    }
    this.#remove(queue, key)
    return restored(record.stanza)
  }

  /** Puts a newly encrypted stanza in the place of one the device could not read. */
  resend(address: DeviceAddress, stanza: BinaryNode): void {
    const queue = this.#queue(keyOf(address))
    const id = stanza.attrs['id'] ?? ''
    const found = this.#find(queue, { kind: 'message', id, to: stanza.attrs['from'] })
    if (!found) {
      this.post(address, stanza)
      return
    }
    const [key, former] = found
    // The client refuses the old stanza right after it asked for a new one; that refusal is not about the new one.
    const record = { ...former, stanza: kept(stanza), strayRefusals: former.strayRefusals + 1 }
    queue.set(key, record)
    this.#table.set(key, record)
    const line = this.#lines.of(address)
    if (line?.ready) line.send(stanza)
  }

  forget(address: DeviceAddress): void {
    const queue = this.#queue(keyOf(address))
    for (const key of [...queue.keys()]) this.#remove(queue, key)
    this.#queues.delete(keyOf(address))
  }

  #find(queue: Map<string, WaitingRecord>, what: Acknowledged): [string, WaitingRecord] | undefined {
    let similar: [string, WaitingRecord] | undefined
    for (const entry of queue) {
      const { tag, attrs } = entry[1].stanza
      if (tag !== what.kind || attrs['id'] !== what.id) continue
      if (tag === 'receipt' && (attrs['type'] ?? '') !== (what.type ?? '')) continue
      if (attrs['from'] === what.to) return entry
      similar ??= entry
    }
    return similar
  }

  #remove(queue: Map<string, WaitingRecord>, key: string): void {
    queue.delete(key)
    this.#table.delete(key)
  }

  #queue(device: string): Map<string, WaitingRecord> {
    let queue = this.#queues.get(device)
    if (!queue) {
      queue = new Map()
      this.#queues.set(device, queue)
    }
    return queue
  }
}

function kept({ tag, attrs, content }: BinaryNode): KeptNode {
  if (content === undefined) return { tag, attrs }
  if (Array.isArray(content)) return { tag, attrs, children: content.map(kept) }
  return { tag, attrs, bytes: base64(Buffer.from(content)) }
}

function restored({ tag, attrs, children, bytes }: KeptNode): BinaryNode {
  if (children) return node(tag, { ...attrs }, children.map(restored))
  return node(tag, { ...attrs }, bytes === undefined ? undefined : unbase64(bytes))
}
