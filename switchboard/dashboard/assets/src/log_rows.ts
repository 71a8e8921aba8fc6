/** Which rows of the log are shown, and how many are kept. */

export const KEPT_ROWS = 1_000

/** Every word of the search is somewhere in the row. */
export function matches(text: string, search: string): boolean {
  const row = text.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every(word => row.includes(word))
}

/** Rows that came while nobody wanted to see any, oldest first; of too many, the newest. */
export class Backlog<Row> {
  #rows: Row[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  add(row: Row): void {
    this.#count++
    this.#rows.push(row)
    if (this.#rows.length > 2 * KEPT_ROWS) this.#rows = this.#rows.slice(-KEPT_ROWS)
  }

  take(): Row[] {
    const rows = this.#rows.slice(-KEPT_ROWS)
    this.#rows = []
    this.#count = 0
    return rows
  }
}
