/**
 * The worker's log: one JSON object per line on stderr. Holds our own words, codes and class names only; what a library
 * says of its errors may carry keys, texts or addresses, so no free text gets in.
 */

export type Level = 'info' | 'warn' | 'error'

/** The only fields a line may have besides its time, level and event. */
export interface Fields {
  readonly attempt?: number
  readonly call?: string
  readonly class?: string
  readonly code?: string | number
  readonly count?: number
  readonly error?: string
  readonly messageId?: string
  readonly ms?: number
  readonly name?: string
  readonly order?: number
  readonly reason?: string
  readonly sequence?: number
  readonly session?: string
  readonly status?: string | number
  readonly type?: string
  readonly version?: string
}

const NAMES: readonly (keyof Fields)[] = [
  'attempt',
  'call',
  'class',
  'code',
  'count',
  'error',
  'messageId',
  'ms',
  'name',
  'order',
  'reason',
  'sequence',
  'session',
  'status',
  'type',
  'version'
]
const WORD = /^[A-Za-z0-9_.:-]{1,64}$/
const WITHHELD = 'withheld'

export class Log {
  readonly #write: (line: string) => void
  readonly #now: () => number

  constructor(write: (line: string) => void = toStderr, now: () => number = Date.now) {
    this.#write = write
    this.#now = now
  }

  info(event: string, fields: Fields = {}): void {
    this.#line('info', event, fields)
  }

  warn(event: string, fields: Fields = {}): void {
    this.#line('warn', event, fields)
  }

  error(event: string, fields: Fields = {}): void {
    this.#line('error', event, fields)
  }

  #line(level: Level, event: string, fields: Fields): void {
    const line: Record<string, unknown> = { time: new Date(this.#now()).toISOString(), level, event: short(event) }
    for (const name of NAMES) if (fields[name] !== undefined) line[name] = short(fields[name])
    this.#write(`${JSON.stringify(line)}\n`)
  }
}

/** What may be told of anything that was thrown: its class, and its code if that is a short word. Never its message. */
export function whatFailed(error: unknown): Fields {
  if (!(error instanceof Error)) return { name: typeof error }
  const code: unknown = 'code' in error ? error.code : undefined
  const name = error.name === 'Error' ? error.constructor.name : error.name
  return typeof code === 'string' || typeof code === 'number' ? { name, code } : { name }
}

/** Types promise words; a slip at run time must not become a leak. */
function short(value: unknown): string | number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && WORD.test(value) ? value : WITHHELD
}

function toStderr(line: string): void {
  process.stderr.write(line)
}
