/**
 * Where each value of the auth store lies in its file. Built by reading the records' tables of contents, never the values, so
 * that memory holds some hundred bytes for a Signal session of several thousand. One record holds one whole change:
 *
 *     length of the table 4 | table, JSON: [type, id, length of the value, or null if it is deleted][] | values
 */
import { parseJson } from './bytes_json.js'
import { RECORD_HEADER } from './record.js'

export type Change = readonly [type: string, id: string, value: Buffer | null]

export interface Slot {
  readonly at: number
  readonly length: number
  /** What it takes in the file, its line in the table included. */
  readonly cost: number
}

const TABLE_LENGTH = 4

export function encodeChanges(changes: readonly Change[]): Buffer {
  const table = Buffer.from(JSON.stringify(changes.map(([type, id, value]) => [type, id, value?.length ?? null])))
  const length = Buffer.alloc(TABLE_LENGTH)
  length.writeUInt32LE(table.length)
  return Buffer.concat([length, table, ...changes.flatMap(([, , value]) => value ?? [])])
}

export class AuthIndex {
  /** Maps keep the order in which ids were written last: the oldest comes first, as in the file. */
  readonly #types = new Map<string, Map<string, Slot>>()
  #live = 0

  /** How many bytes of the file are still of use. */
  get live(): number {
    return this.#live
  }

  types(): string[] {
    return [...this.#types.keys()]
  }

  ids(type: string): string[] {
    return [...(this.#types.get(type)?.keys() ?? [])]
  }

  slot(type: string, id: string): Slot | undefined {
    return this.#types.get(type)?.get(id)
  }

  /** Takes in the record whose header starts at `at`. */
  take(record: Buffer, at: number): void {
    const tableLength = record.readUInt32LE(0)
    const tableEnd = TABLE_LENGTH + tableLength
    const table = parseJson(record.subarray(TABLE_LENGTH, tableEnd)) as [string, string, number | null][]
    const line = Math.floor(tableLength / Math.max(1, table.length))
    let place = at + RECORD_HEADER + tableEnd
    for (const [type, id, length] of table) {
      this.#remove(type, id)
      if (length === null) continue
      this.#add(type, id, { at: place, length, cost: length + line })
      place += length
    }
  }

  #add(type: string, id: string, slot: Slot): void {
    const ids = this.#types.get(type) ?? new Map<string, Slot>()
    ids.set(id, slot)
    this.#types.set(type, ids)
    this.#live += slot.cost
  }

  #remove(type: string, id: string): void {
    const slot = this.slot(type, id)
    if (!slot) return
    this.#types.get(type)?.delete(id)
    this.#live -= slot.cost
  }
}
