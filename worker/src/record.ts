/**
 * How one record lies in an append file, and how records are found again. Knows nothing of what is in them.
 *
 *     marker 2 | length 4 | durable 6 | checksum 4 | bytes
 *
 * `durable` is how much of the file was known to be on the disk when the record was written: it tells damage from a torn tail.
 * The checksum also covers the record's place, so that bytes which look like a record inside another one are never taken for one.
 */
import { readSync } from 'node:fs'
import { crc32 } from 'node:zlib'

export const RECORD_HEADER = 16
const CHECKED_HEADER = 12
/** 0xff never occurs in UTF-8, so JSON inside a record can't even look like the start of one. */
const MARKER = Buffer.from([0xff, 0x53])
const WINDOW = 256 * 1024
const SEARCH_STEP = 4096

/** Gives `length` bytes at a place in a file, or null where the file ends before that. */
export type Read = (at: number, length: number) => Buffer | null

export interface StoredRecord {
  readonly bytes: Buffer
  readonly durable: number
  /** Where the next record starts. */
  readonly end: number
}

export function encodeRecord(bytes: Uint8Array, at: number, durable: number): Buffer {
  const whole = Buffer.allocUnsafe(RECORD_HEADER + bytes.length)
  MARKER.copy(whole)
  whole.writeUInt32LE(bytes.length, 2)
  whole.writeUIntLE(durable, 6, 6)
  whole.set(bytes, RECORD_HEADER)
  whole.writeUInt32LE(checksum(whole, at), CHECKED_HEADER)
  return whole
}

/** The record that starts at `at`, or null when there is none that is whole. */
export function readRecord(read: Read, at: number): StoredRecord | null {
  const header = read(at, RECORD_HEADER)
  if (!header?.subarray(0, MARKER.length).equals(MARKER)) return null
  const whole = read(at, RECORD_HEADER + header.readUInt32LE(2))
  if (!whole || whole.readUInt32LE(CHECKED_HEADER) !== checksum(whole, at)) return null
  return { bytes: whole.subarray(RECORD_HEADER), durable: whole.readUIntLE(6, 6), end: at + whole.length }
}

/**
 * Whether the unreadable bytes at `at` were once safely on the disk: a whole record after them says so.
 * If none does, they are what a crash left of writes that nobody was promised.
 */
export function wasDurable(read: Read, at: number, size: number): boolean {
  let place = at + 1
  while (place < size) {
    const chunk = read(place, Math.min(SEARCH_STEP, size - place))
    const found = chunk ? chunk.indexOf(MARKER) : -1
    if (!chunk || (found < 0 && place + chunk.length >= size)) return false
    // The marker may lie across the edge of two steps, so its first byte is looked at again.
    place += found < 0 ? chunk.length - 1 : found
    if (found < 0) continue
    const record = readRecord(read, place)
    if (record && record.durable > at) return true
    place = record ? record.end : place + 1
  }
  return false
}

/** Reads exactly what is asked for. */
export function directly(fd: number, size: number): Read {
  return (at, length) => {
    if (at + length > size) return null
    const bytes = Buffer.allocUnsafe(length)
    return readSync(fd, bytes, 0, length, at) === length ? bytes : null
  }
}

/** Reads ahead: for walking through a file without a system call for each record, and without holding the whole. */
export function ahead(fd: number, size: number): Read {
  const read = directly(fd, size)
  let start = 0
  let window: Buffer = Buffer.alloc(0)
  return (at, length) => {
    if (at + length > size) return null
    if (at < start || at + length > start + window.length) {
      const fresh = read(at, Math.max(length, Math.min(WINDOW, size - at)))
      if (!fresh) return null
      start = at
      window = fresh
    }
    return window.subarray(at - start, at - start + length)
  }
}

function checksum(whole: Buffer, at: number): number {
  const header = crc32(whole.subarray(0, CHECKED_HEADER), at % 2 ** 32)
  return crc32(whole.subarray(RECORD_HEADER), header)
}
