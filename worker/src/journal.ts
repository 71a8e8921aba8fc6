/**
 * What the server has not been told yet, in order, on disk. Numbers the events and remembers what was added already.
 * Does not tell anything itself. Only its head, the keys and one report are in memory, however much waits.
 *
 * The records: a head first, `{stream, sequence, keys}`; then reports, `{report, sequence?, once?}`, and marks, `{toldTo}`: where
 * the last report that was told ends. What is told is forgotten by rewriting the file.
 */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { AppendFile } from './append_file.js'
import { parseJson } from './bytes_json.js'
import { Doorbell } from './doorbell.js'
import { RECORD_HEADER } from './record.js'
import { StorageError } from './storage_errors.js'
import type { Report } from './types.js'

export interface JournalEntry {
  readonly report: Report
  /** The event's number within the journal's stream; acks and nacks have none. */
  readonly sequence: number | null
}

/** Nothing may be lost, and there is no room for more: the worker has to stop until the server takes reports again. */
export class JournalFull extends Error {
  override readonly name = 'JournalFull'

  constructor(waiting: number) {
    super(`the journal is full, with ${waiting} reports that the server has not answered: see why it does not`)
  }
}

interface Head {
  readonly stream: string
  readonly sequence: number
  readonly keys: readonly string[]
}

interface Line extends JournalEntry {
  readonly once?: string
}

interface Waiting {
  readonly entry: JournalEntry
  readonly end: number
  readonly bytes: Buffer
}

type JournalRecord = Head | Line | { readonly toldTo: number }

const FILE = 'journal.dat'
const MAX_BYTES = 64 * 1024 * 1024
const MAX_KEYS = 2_000
const MIN_DEAD_BYTES = 256 * 1024
const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const STREAM_LENGTH = 16

export class Journal {
  readonly #file: AppendFile
  readonly #maxBytes: number
  readonly #keys = new Set<string>()
  readonly #doorbell = new Doorbell()
  #stream = ''
  #nextSequence = 1
  #length = 0
  /** Where the head ends: what is before it can't be saved by a rewrite. */
  #headEnd = 0
  /** Everything before this place is told. */
  #toldTo = 0
  #oldest: Waiting | null = null
  #compactAbove = 0

  private constructor(folder: string, maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#file = AppendFile.open(join(folder, FILE), (bytes, at) =>
      this.#take(parse(bytes), at + RECORD_HEADER + bytes.length)
    )
    if (this.#stream) return
    this.#append({ stream: randomStream(), sequence: 1, keys: [] })
  }

  static open(folder: string, options: { readonly maxBytes?: number } = {}): Journal {
    return new Journal(folder, options.maxBytes ?? MAX_BYTES)
  }

  /** Names this journal for as long as it lives; a new one after it was lost. */
  get stream(): string {
    return this.#stream
  }

  /** How many reports wait. */
  get length(): number {
    return this.#length
  }

  /**
   * Written when it returns. False if a report with the same key is among the last 2,000 that had one.
   * Throws `JournalFull` when too much waits, and `StorageError` when the disk does not take it; nothing is added then.
   */
  add(report: Report, once?: string): boolean {
    if (once !== undefined && this.#keys.has(once)) return false
    const sequence = report.kind === 'event' ? this.#nextSequence : null
    const line: Line = { report, sequence, ...(once === undefined ? {} : { once }) }
    const bytes = encode(line)
    this.#makeRoom(bytes.length)
    this.#append(line, bytes)
    // A failed sync stays with the file: the next `add` or `next` throws it.
    this.#file.sync().then(
      () => this.#doorbell.ring(),
      () => this.#doorbell.ring()
    )
    return true
  }

  /** Resolves once everything added so far would survive a power cut. */
  sync(): Promise<void> {
    return this.#file.sync()
  }

  /** So much waits that what happens next might not fit in any more. */
  get isCrowded(): boolean {
    return this.#file.size - this.#deadBytes > this.#maxBytes * 0.75
  }

  /** A report with this key is among the last 2,000 that had one. */
  knows(once: string): boolean {
    return this.#keys.has(once)
  }

  /**
   * The oldest report that is not told, or null. It is durable: if a power cut took back what the server has heard already, its
   * number would be given to another event, which the server would then take for a repetition.
   */
  next(): JournalEntry | null {
    if (this.#length === 0) return null
    this.#oldest ??= this.#readOldest()
    if (this.#oldest.end > this.#file.durable) this.#file.syncNow()
    return this.#oldest.entry
  }

  /** The server has answered this one, which `next` gave last. A mark that a power cut takes back means that it is told again. */
  told(entry: JournalEntry): void {
    if (entry !== this.#oldest?.entry) throw new Error('only the entry that next() gave last can be told, and once')
    this.#append({ toldTo: this.#oldest.end })
    this.#compactIfWorthIt()
  }

  /** Resolves as soon as `next` has something, without blocking for the disk. Rejects with the signal's reason. */
  async news(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    while (this.#length === 0) await this.#doorbell.heard(signal)
    await this.#file.sync()
    signal?.throwIfAborted()
  }

  close(): void {
    this.#doorbell.remove(new Error('the journal is closed'))
    this.#file.close()
  }

  /** Takes in a record of the file that ends at `end`. */
  #take(record: JournalRecord, end: number): void {
    if ('toldTo' in record) {
      this.#toldTo = record.toldTo
      this.#oldest = null
      this.#length -= 1
    } else if ('report' in record) {
      this.#length += 1
      if (record.sequence !== null) this.#nextSequence = record.sequence + 1
      if (record.once !== undefined) this.#remember(record.once)
    } else {
      this.#stream = record.stream
      this.#nextSequence = record.sequence
      for (const key of record.keys) this.#remember(key)
      this.#headEnd = end
      this.#toldTo = end
    }
  }

  #append(record: JournalRecord, bytes = encode(record)): void {
    this.#file.append(bytes)
    this.#take(record, this.#file.size)
  }

  #remember(key: string): void {
    this.#keys.add(key)
    if (this.#keys.size <= MAX_KEYS) return
    for (const oldest of this.#keys) {
      this.#keys.delete(oldest)
      return
    }
  }

  #readOldest(): Waiting {
    for (const waiting of this.#untold()) return waiting
    throw new Error(`the journal lost count: ${this.#length} reports should wait`)
  }

  /** Told marks lie between the reports. */
  *#untold(): Generator<Waiting> {
    let place = this.#toldTo
    for (let found = this.#file.recordAt(place); found; found = this.#file.recordAt(place)) {
      const record = parse(found.bytes)
      place = found.end
      if (!('report' in record)) continue
      const entry = { report: record.report, sequence: record.sequence }
      yield { entry, end: found.end, bytes: found.bytes }
    }
  }

  get #deadBytes(): number {
    return (this.#length === 0 ? this.#file.size : this.#toldTo) - this.#headEnd
  }

  #makeRoom(bytes: number): void {
    const fits = () => this.#file.size + RECORD_HEADER + bytes <= this.#maxBytes
    if (fits()) return
    // For less than that, every single report would copy the whole file.
    if (this.#deadBytes > this.#maxBytes / 8) this.#rewrite()
    if (!fits()) throw new JournalFull(this.#length)
  }

  #compactIfWorthIt(): void {
    const { size } = this.#file
    const dead = this.#deadBytes
    if (dead <= MIN_DEAD_BYTES || dead <= size / 2 || size < this.#compactAbove) return
    try {
      this.#rewrite()
    } catch (error) {
      // No room for a copy is no harm: all is in the file as it is. Tried again when it has grown.
      if (!(error instanceof StorageError && error.isFull)) throw error
      this.#compactAbove = size + MIN_DEAD_BYTES
    }
  }

  #rewrite(): void {
    const ends: number[] = []
    this.#file.rewrite(this.#liveRecords(), (bytes, at) => {
      if (ends.length < 2) ends.push(at + RECORD_HEADER + bytes.length)
    })
    const [headEnd = 0, oldestEnd = 0] = ends
    this.#headEnd = headEnd
    this.#toldTo = headEnd
    // Whoever is telling it just now holds the entry, so it stays the same object.
    if (this.#oldest) this.#oldest = { ...this.#oldest, end: oldestEnd }
  }

  *#liveRecords(): Generator<Buffer> {
    const head: Head = { stream: this.#stream, sequence: this.#nextSequence, keys: [...this.#keys] }
    yield encode(head)
    for (const waiting of this.#untold()) yield waiting.bytes
  }
}

function encode(record: JournalRecord): Buffer {
  return Buffer.from(JSON.stringify(record))
}

function parse(bytes: Buffer): JournalRecord {
  return parseJson(bytes) as JournalRecord
}

function randomStream(): string {
  return Array.from({ length: STREAM_LENGTH }, () => ALPHANUMERIC[randomInt(ALPHANUMERIC.length)]).join('')
}
