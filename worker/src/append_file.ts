/**
 * A file of checksummed records that only grows, or is replaced as a whole. Survives SIGKILL and power cuts at any moment.
 * Knows nothing of what the records mean. One process, one `AppendFile` for each path: a second writer is noticed at the next
 * append of either (the file is not as it was left) and refused, but it is the caller's duty not to have one.
 */
import * as fs from 'node:fs'
import { promisify } from 'node:util'
import { directly, encodeRecord, type Read, readRecord, type StoredRecord } from './record.js'
import { openFile, replaceFile, syncFolder, type Visit, writeAll } from './record_file.js'
import { DamagedFile, StorageError } from './storage_errors.js'

const fdatasync = promisify(fs.fdatasync)

export class AppendFile {
  readonly #path: string
  #fd: number
  #end: number
  /** Up to here the file is known to be on the disk. */
  #durable: number
  #failure: Error | null = null
  #waiting: Promise<void> | null = null
  #running: Promise<void> = Promise.resolve()
  #syncingFd: number | null = null

  private constructor(path: string, fd: number, end: number) {
    this.#path = path
    this.#fd = fd
    this.#end = end
    this.#durable = end
  }

  /** Opens or makes the file, shows every record in order, and cuts off what a crash left half written. */
  static open(path: string, visit: Visit): AppendFile {
    const { fd, end } = openFile(path, visit)
    return new AppendFile(path, fd, end)
  }

  get size(): number {
    return this.#end
  }

  /** How much of the file would be there after a power cut. */
  get durable(): number {
    return this.#durable
  }

  /** Written when it returns, so that a SIGKILL can't lose it; durable only after `sync`. Returns where the record starts. */
  append(bytes: Uint8Array): number {
    this.#checkUsable()
    this.#checkAlone()
    const at = this.#end
    const whole = encodeRecord(bytes, at, this.#durable)
    try {
      writeAll(this.#fd, whole, at)
    } catch (error) {
      this.#takeBack()
      throw StorageError.from(error, this.#path)
    }
    this.#end += whole.length
    return at
  }

  /** Some bytes of a record that is known to be there, without looking at the rest of it. */
  read(at: number, length: number): Buffer {
    const bytes = this.#reader()(at, length)
    if (!bytes) throw new DamagedFile(this.#path, at, null)
    return bytes
  }

  /** The record that starts at `at`, or null at the end of the file. */
  recordAt(at: number): StoredRecord | null {
    if (at >= this.#end) return null
    const record = readRecord(this.#reader(), at)
    if (!record) throw new DamagedFile(this.#path, at, null)
    return record
  }

  /** Resolves when all that was appended before the call is durable. Many callers share one fdatasync. */
  sync(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#durable === this.#end) return Promise.resolve()
    if (!this.#waiting) {
      this.#waiting = this.#running.then(() => this.#syncRound())
      // The round's callers are told of its failure, and `#failure` keeps it for later ones.
      this.#running = this.#waiting.catch(() => {})
    }
    return this.#waiting
  }

  /** The same, at once and blocking. */
  syncNow(): void {
    this.#checkUsable()
    if (this.#durable === this.#end) return
    try {
      fs.fdatasyncSync(this.#fd)
    } catch (error) {
      throw this.#fail(error)
    }
    this.#durable = this.#end
  }

  /** Puts a new file with these records in the place of this one: all or nothing, and durable when it returns. */
  rewrite(records: Iterable<Uint8Array>, visit: Visit): void {
    this.#checkUsable()
    this.#checkAlone()
    const made = replaceFile(this.#path, records, visit)
    this.#retire()
    this.#fd = made.fd
    this.#end = made.end
    this.#durable = made.end
    try {
      syncFolder(this.#path)
    } catch (error) {
      throw this.#fail(error)
    }
  }

  /** Everything is durable when it returns. */
  close(): void {
    if (this.#fd < 0) return
    try {
      if (!this.#failure) this.syncNow()
    } finally {
      this.#retire()
      this.#fd = -1
      this.#failure ??= new Error(`${this.#path} is closed: open it again to use it`)
    }
  }

  async #syncRound(): Promise<void> {
    this.#waiting = null
    if (this.#durable === this.#end) return
    this.#checkUsable()
    const fd = this.#fd
    const end = this.#end
    this.#syncingFd = fd
    try {
      await fdatasync(fd)
      if (fd === this.#fd) this.#durable = Math.max(this.#durable, end)
    } catch (error) {
      // A file that was replaced or closed meanwhile has been synced by that already.
      if (fd === this.#fd) throw this.#fail(error)
    } finally {
      this.#syncingFd = null
      if (fd !== this.#fd) fs.closeSync(fd)
    }
  }

  /** A descriptor with a sync under way is closed by that: closing it now could hand its number to another file. */
  #retire(): void {
    if (this.#fd !== this.#syncingFd) fs.closeSync(this.#fd)
  }

  /** A file that failed can still be read, but not one that is closed. */
  #reader(): Read {
    if (this.#fd < 0) this.#checkUsable()
    return directly(this.#fd, this.#end)
  }

  #takeBack(): void {
    try {
      fs.ftruncateSync(this.#fd, this.#end)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** After a failed sync the kernel may have dropped what it could not write: nothing more may be built on this file. */
  #fail(error: unknown): Error {
    this.#failure ??= StorageError.from(error, this.#path)
    return this.#failure
  }

  #checkUsable(): void {
    if (this.#failure) throw this.#failure
  }

  #checkAlone(): void {
    const { size, nlink } = fs.fstatSync(this.#fd)
    if (size === this.#end && nlink > 0) return
    throw this.#fail(new Error(`${this.#path} was changed by someone else: let only one worker use it, and restart`))
  }
}
