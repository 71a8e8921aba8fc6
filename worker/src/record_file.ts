/**
 * Files of records as a whole: opening one and mending what a crash left, and putting a new one in its place.
 *
 * What is unreadable when a file is opened is one of two things, and they are treated differently on purpose:
 * - The torn tail: writes under way when the power went. Nobody was promised them (`sync` had not resolved), so they are cut off.
 *   After a power cut the pages of several such writes may be on the disk in any order, so a whole record may follow a torn one
 *   and goes with it: keeping it would be a history with a hole.
 * - Damage to what had been promised (a later record says that it was on the disk). Going on without it could bring back used
 *   keys or reuse numbers, and cutting there would drop good records in silence. So it is an error, and the file is kept aside:
 *   the error is seen once, and the next start begins with an empty file rather than failing for ever.
 */
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { ahead, encodeRecord, readRecord, wasDurable } from './record.js'
import { DamagedFile, StorageError } from './storage_errors.js'

const MAGIC = Buffer.from('SWBFILE1')

/** Is shown a record and where it starts. The bytes are only good during the call. */
export type Visit = (bytes: Buffer, at: number) => void

export interface OpenFile {
  readonly fd: number
  /** Where the last record ends. */
  readonly end: number
}

/** Opens or makes the file and shows every record in order. All that is left in it is durable. */
export function openFile(path: string, visit: Visit): OpenFile {
  fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // What a replacement left behind when it was killed: it never took the file's place.
  fs.rmSync(newPath(path), { force: true })
  if (!hasContent(path)) {
    const made = replaceFile(path, [], visit)
    syncFolder(path)
    return made
  }
  const fd = fs.openSync(path, 'r+')
  try {
    const end = walk(path, fd, visit)
    fs.ftruncateSync(fd, end)
    fs.fdatasyncSync(fd)
    return { fd, end }
  } catch (error) {
    fs.closeSync(fd)
    throw StorageError.from(error, path)
  }
}

function newPath(path: string): string {
  return `${path}.new`
}

/** Whether there is anything to read. A file too short for its first word is as good as none, if it is the start of that word. */
function hasContent(path: string): boolean {
  const fd = fs.existsSync(path) ? fs.openSync(path, 'r') : null
  if (fd === null) return false
  const first = Buffer.alloc(MAGIC.length)
  const length = fs.readSync(fd, first, 0, first.length, 0)
  fs.closeSync(fd)
  if (!MAGIC.subarray(0, length).equals(first.subarray(0, length))) throw setAside(path, 0)
  return length === MAGIC.length
}

/** Shows all records, and returns where the last good one ends. */
function walk(path: string, fd: number, visit: Visit): number {
  const { size } = fs.fstatSync(fd)
  const read = ahead(fd, size)
  let at = MAGIC.length
  for (let record = readRecord(read, at); record; record = readRecord(read, at)) {
    visit(record.bytes, at)
    at = record.end
  }
  if (wasDurable(read, at, size)) throw setAside(path, at)
  return at
}

function setAside(path: string, at: number): DamagedFile {
  const aside = `${path}.corrupt-${Date.now()}`
  fs.renameSync(path, aside)
  syncFolder(path)
  return new DamagedFile(path, at, aside)
}

/**
 * Writes a file with these records beside the one at `path` and puts it in its place: all or nothing. The caller then syncs
 * the folder, with the new file in hand.
 */
export function replaceFile(path: string, records: Iterable<Uint8Array>, visit: Visit): OpenFile {
  let fd = -1
  try {
    fd = fs.openSync(newPath(path), 'w+', 0o600)
    writeAll(fd, MAGIC, 0)
    let end = MAGIC.length
    for (const bytes of records) {
      // The file takes its place only once all of it is durable, so every record may say so of those before it.
      const whole = encodeRecord(bytes, end, end)
      writeAll(fd, whole, end)
      visit(whole.subarray(whole.length - bytes.length), end)
      end += whole.length
    }
    fs.fsyncSync(fd)
    fs.renameSync(newPath(path), path)
    return { fd, end }
  } catch (error) {
    if (fd >= 0) fs.closeSync(fd)
    fs.rmSync(newPath(path), { force: true })
    throw StorageError.from(error, path)
  }
}

export function writeAll(fd: number, bytes: Buffer, at: number): void {
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(fd, bytes, done, bytes.length - done, at + done)
}

/** A rename is only durable once its folder is. */
export function syncFolder(path: string): void {
  const fd = fs.openSync(dirname(path), 'r')
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}
