/**
 * Tables that survive the process: an append-only log of changes beside the maps, rewritten when it has grown too long.
 * `flush` before anything is said that rests on a change; the log then survives a kill of the process.
 */

import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const REWRITE_AFTER_BYTES = 64 * 1024 * 1024
const FLUSH_AFTER_MS = 100

type Line = [table: string, key: string, value?: unknown]

/** Records by key. A record that was changed in place must be `set` again to be kept. */
export class Table<T> {
  readonly #records = new Map<string, T>()
  readonly #changed: (key: string) => void

  constructor(changed: (key: string) => void) {
    this.#changed = changed
  }

  get size(): number {
    return this.#records.size
  }

  get(key: string): T | undefined {
    return this.#records.get(key)
  }

  has(key: string): boolean {
    return this.#records.has(key)
  }

  set(key: string, record: T): void {
    this.#records.set(key, record)
    this.#changed(key)
  }

  delete(key: string): boolean {
    const existed = this.#records.delete(key)
    if (existed) this.#changed(key)
    return existed
  }

  /** Oldest first. */
  entries(): IterableIterator<[string, T]> {
    return this.#records.entries()
  }

  values(): IterableIterator<T> {
    return this.#records.values()
  }

  /** Forgets the oldest records beyond a number. */
  trim(most: number): T[] {
    const gone: T[] = []
    for (const [key, record] of this.#records) {
      if (this.#records.size <= most) break
      this.delete(key)
      gone.push(record)
    }
    return gone
  }

  load(key: string, record: T | undefined): void {
    if (record === undefined) this.#records.delete(key)
    else this.#records.set(key, record)
  }
}

export class Store {
  readonly #path: string | null
  readonly #tables = new Map<string, Table<unknown>>()
  readonly #dirty = new Map<string, Set<string>>()
  readonly #loaded = new Map<string, Line[]>()
  #file: number | null = null
  #written = 0
  #timer: NodeJS.Timeout | null = null

  /** `dir` null keeps everything in memory only. */
  constructor(dir: string | null) {
    this.#path = dir === null ? null : join(dir, 'state.log')
    if (dir === null || this.#path === null) return
    mkdirSync(dir, { recursive: true })
    this.#load(this.#path)
    this.#file = openSync(this.#path, 'a')
  }

  table<T>(name: string): Table<T> {
    const table = new Table<T>(key => this.#mark(name, key))
    for (const [, key, value] of this.#loaded.get(name) ?? []) table.load(key, value as T | undefined)
    this.#loaded.delete(name)
    this.#tables.set(name, table)
    return table
  }

  flush(): void {
    if (this.#file === null || this.#dirty.size === 0) return
    let text = ''
    for (const [name, keys] of this.#dirty) {
      const table = this.#tables.get(name)
      for (const key of keys)
        text += `${JSON.stringify([name, key, table?.get(key)].slice(0, table?.has(key) ? 3 : 2))}\n`
    }
    this.#dirty.clear()
    writeSync(this.#file, text)
    this.#written += text.length
    if (this.#written > REWRITE_AFTER_BYTES) this.#rewrite()
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.flush()
    if (this.#file !== null) {
      this.#rewrite()
      closeSync(this.#file)
    }
    this.#file = null
  }

  #mark(name: string, key: string): void {
    if (this.#file === null) return
    let keys = this.#dirty.get(name)
    if (!keys) {
      keys = new Set()
      this.#dirty.set(name, keys)
    }
    keys.add(key)
    if (this.#timer) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.flush()
    }, FLUSH_AFTER_MS)
    this.#timer.unref()
  }

  #load(path: string): void {
    if (!existsSync(path)) return
    const text = readFileSync(path, 'utf8')
    // A kill in the middle of a write leaves half a line at the end: what it would have said was never relied upon.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    if (whole.length !== text.length) writeFileSync(path, whole)
    for (const line of whole.split('\n')) {
      if (line === '') continue
      const entry = JSON.parse(line) as Line
      const lines = this.#loaded.get(entry[0])
      if (lines) lines.push(entry)
      else this.#loaded.set(entry[0], [entry])
    }
    this.#written = whole.length
  }

  /** A new log with only what is true now, put in the place of the old one in one step. */
  #rewrite(): void {
    if (this.#path === null || this.#file === null) return
    const fresh = `${this.#path}.new`
    const file = openSync(fresh, 'w')
    for (const [name, table] of this.#tables) {
      let text = ''
      for (const [key, record] of table.entries()) text += `${JSON.stringify([name, key, record])}\n`
      writeSync(file, text)
    }
    renameSync(fresh, this.#path)
    closeSync(this.#file)
    this.#file = file
    this.#written = 0
  }
}
