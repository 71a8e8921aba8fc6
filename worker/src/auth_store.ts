/**
 * The credentials and Signal keys of one session, in one append file. Values are read from the file when they are asked for:
 * the kernel caches it, and what is handed out is the caller's own copy. Knows nothing of WhatsApp or Baileys.
 * Open a folder once: a second store on it, in this process or another, makes the next write of either fail loudly.
 */
import { join } from 'node:path'
import { AppendFile } from './append_file.js'
import { AuthIndex, type Change, encodeChanges } from './auth_index.js'
import { decodeValue, encodeValue } from './bytes_json.js'
import { StorageError } from './storage_errors.js'

export type AuthChanges = Record<string, Record<string, unknown>>

const FILE = 'auth.dat'
const CREDS_TYPE = ''
const CREDS_ID = 'creds'
const MIN_DEAD_BYTES = 1024 * 1024
/** How much a record of a rewritten file holds: few enough to copy at once, enough to make headers cheap. */
const REWRITE_BATCH = 64 * 1024

export class AuthStore {
  readonly #file: AppendFile
  readonly #limits = new Map<string, number>()
  #index: AuthIndex
  #compactAbove = 0

  private constructor(file: AppendFile, index: AuthIndex) {
    this.#file = file
    this.#index = index
  }

  static open(folder: string): AuthStore {
    const index = new AuthIndex()
    const file = AppendFile.open(join(folder, FILE), (record, at) => index.take(record, at))
    return new AuthStore(file, index)
  }

  readCreds(): unknown | undefined {
    return this.#read(CREDS_TYPE, CREDS_ID)
  }

  /** As `set`, for the credentials. */
  writeCreds(creds: unknown): Promise<void> {
    return this.#write([[CREDS_TYPE, CREDS_ID, creds]])
  }

  /** Those of the ids that are known. */
  get(type: string, ids: readonly string[]): Record<string, unknown> {
    const known = ids.filter(id => this.#index.slot(type, id))
    return Object.fromEntries(known.map(id => [id, this.#read(type, id)]))
  }

  /**
   * All of the changes or none; null and undefined delete. They are written and seen by `get` when this returns, so that a
   * SIGKILL can't lose them, and durable when the promise resolves. It rejects without any effect if they can't be written.
   * If it rejects because they can't be made durable, the store takes nothing more: restart.
   */
  set(changes: AuthChanges): Promise<void> {
    return this.#write(
      Object.entries(changes).flatMap(([type, values]) =>
        Object.entries(values).map(([id, value]) => [type, id, value] as const)
      )
    )
  }

  /** The ids of a type, the one written longest ago first. */
  list(type: string): string[] {
    return this.#index.ids(type)
  }

  /** From now on every change leaves only this many ids of the type, those written last. Say it anew after opening. */
  keepNewest(type: string, limit: number): void {
    this.#limits.set(type, limit)
  }

  close(): void {
    this.#file.close()
  }

  #read(type: string, id: string): unknown {
    const slot = this.#index.slot(type, id)
    return slot && decodeValue(this.#file.read(slot.at, slot.length))
  }

  #write(values: readonly (readonly [type: string, id: string, value: unknown])[]): Promise<void> {
    try {
      const changes = this.#withinLimits(values.map(([type, id, value]) => [type, id, encoded(value)]))
      const needed = changes.filter(([type, id, value]) => value || this.#index.slot(type, id))
      if (needed.length > 0) {
        const record = encodeChanges(needed)
        this.#index.take(record, this.#file.append(record))
        this.#compactIfWorthIt()
      }
      return this.#file.sync()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The same changes, with the deletions that limits ask for. In the same record, so that no crash leaves one without the other. */
  #withinLimits(changes: readonly Change[]): readonly Change[] {
    let limited = changes
    for (const [type, limit] of this.#limits) {
      const mine = new Map(limited.filter(([changed]) => changed === type).map(([, id, value]) => [id, value]))
      if (mine.size === 0) continue
      const old = this.#index.ids(type).filter(id => !mine.has(id))
      const added = [...mine].filter(([, value]) => value).map(([id]) => id)
      const surplus = [...old, ...added].slice(0, Math.max(0, old.length + added.length - limit))
      if (surplus.length === 0) continue
      const gone = new Set(surplus)
      limited = [
        ...surplus.map(id => [type, id, null] as const),
        ...limited.filter(([changed, id]) => changed !== type || !gone.has(id))
      ]
    }
    return limited
  }

  /** Blocks while it copies what is live, so no change can come in between. */
  #compactIfWorthIt(): void {
    const { size } = this.#file
    const dead = size - this.#index.live
    if (dead <= MIN_DEAD_BYTES || dead <= size / 2 || size < this.#compactAbove) return
    const fresh = new AuthIndex()
    try {
      this.#file.rewrite(this.#liveRecords(), (record, at) => fresh.take(record, at))
      this.#index = fresh
    } catch (error) {
      // No room for a copy is no harm: all is in the file as it is. Tried again when it has grown.
      if (!(error instanceof StorageError && error.isFull)) throw error
      this.#compactAbove = size + MIN_DEAD_BYTES
    }
  }

  *#liveRecords(): Generator<Buffer> {
    let batch: Change[] = []
    let bytes = 0
    for (const type of this.#index.types()) {
      for (const id of this.#index.ids(type)) {
        const slot = this.#index.slot(type, id)
        if (!slot) continue
        batch.push([type, id, this.#file.read(slot.at, slot.length)])
        bytes += slot.cost
        if (bytes < REWRITE_BATCH) continue
        yield encodeChanges(batch)
        batch = []
        bytes = 0
      }
    }
    if (batch.length > 0) yield encodeChanges(batch)
  }
}

function encoded(value: unknown): Buffer | null {
  if (value === null || value === undefined) return null
  const bytes = encodeValue(value)
  if (!bytes) throw new TypeError('a value that JSON can not hold was given to the auth store')
  return bytes
}
