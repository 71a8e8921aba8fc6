/** What phones show: each message once, however often it came, and whether it was delivered and read. */

import type { Records, ShownRecord } from './records.js'
import type { Phone, ShownMessage } from './types.js'

const MOST_SHOWN = 50_000

export class Chats {
  readonly #table: Records['shown']
  /** Messages that are not read yet, by chat. */
  readonly #unread = new Map<string, Set<string>>()
  readonly #listeners = new Set<(message: ShownMessage) => void>()

  constructor(table: Records['shown']) {
    this.#table = table
    for (const record of table.values()) this.#index(record)
  }

  all(): IterableIterator<ShownRecord> {
    return this.#table.values()
  }

  find(from: Phone, to: Phone, id: string): ShownRecord | undefined {
    return this.#table.get(keyFor(from, to, id))
  }

  unread(from: Phone, to: Phone): ShownRecord[] {
    return [...(this.#unread.get(chatOf(from, to)) ?? [])].flatMap(id => this.find(from, to, id) ?? [])
  }

  show(record: ShownRecord): void {
    this.save(record)
    for (const old of this.#table.trim(MOST_SHOWN)) this.#unread.get(chatOf(old.from, old.to))?.delete(old.id)
    for (const listener of this.#listeners) listener(viewOf(record))
  }

  save(record: ShownRecord): void {
    this.#table.set(keyFor(record.from, record.to, record.id), record)
    this.#index(record)
  }

  onShown(listener: (message: ShownMessage) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #index(record: ShownRecord): void {
    const chat = chatOf(record.from, record.to)
    const ids = this.#unread.get(chat)
    if (record.read) {
      ids?.delete(record.id)
      if (ids?.size === 0) this.#unread.delete(chat)
    } else if (ids) ids.add(record.id)
    else this.#unread.set(chat, new Set([record.id]))
  }
}

export function viewOf(record: ShownRecord): ShownMessage {
  const { id, from, to, text, at, stanzas, delivered, read } = record
  return { id, from, to, text, at, stanzas, delivered, read }
}

function keyFor(from: Phone, to: Phone, id: string): string {
  return `${from}/${to}/${id}`
}

function chatOf(from: Phone, to: Phone): string {
  return `${from}/${to}`
}
