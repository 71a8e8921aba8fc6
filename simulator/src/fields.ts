/** Reads the fields of a JSON body or of a query into typed values. What does not fit is `Refused` with what to do. */
import { Refused } from './types.js'

/** Turns one value into its type, or answers null if it does not fit. */
export interface Field<T> {
  /** What it must be, for the error: "phone must be …". */
  readonly must: string
  read(value: unknown): T | null
}

type Shape = Record<string, Field<unknown>>
type Values<S extends Shape> = { [K in keyof S]: S[K] extends Field<infer T> ? T : never }

export const text: Field<string> = {
  must: 'a text that is not empty',
  read: value => (typeof value === 'string' && value !== '' ? value : null)
}

export const phone: Field<string> = {
  must: 'a phone number with its country code, as 972501234567',
  read: value => (typeof value === 'string' && /^\+?[1-9]\d{6,14}$/.test(value) ? value.replace('+', '') : null)
}

export const phones: Field<readonly string[]> = {
  must: 'a list of phone numbers with their country codes',
  read: value => {
    if (!Array.isArray(value)) return null
    const read = value.map(entry => phone.read(entry))
    return read.some(entry => entry === null) ? null : read.filter(entry => entry !== null)
  }
}

export const count: Field<number> = {
  must: 'a whole number from 0 up',
  read: value => (Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : null)
}

export const flag: Field<boolean> = {
  must: 'true or false',
  read: value => (typeof value === 'boolean' ? value : null)
}

export function oneOf<T extends string>(words: readonly T[]): Field<T> {
  return { must: `one of ${words.join(', ')}`, read: value => words.find(word => word === value) ?? null }
}

export function orNull<T>(field: Field<T>): Field<{ value: T | null }> {
  return {
    must: `${field.must}, or null`,
    read: value => {
      if (value === null) return { value: null }
      const read = field.read(value)
      return read === null ? null : { value: read }
    }
  }
}

/** All of `required` and what is there of `optional`. A field of neither is refused: it is most likely a typing error. */
export function readFields<R extends Shape, O extends Shape>(
  source: unknown,
  required: R,
  optional: O
): Values<R> & Partial<Values<O>> {
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw new Refused(`send a JSON object with ${Object.keys(required).join(', ') || 'its fields'}`)
  }
  const known: Shape = { ...required, ...optional }
  const values: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(source)) {
    const field = Object.hasOwn(known, name) ? known[name] : undefined
    if (field === undefined) throw new Refused(`there is no field ${name}: known are ${Object.keys(known).join(', ')}`)
    const read = field.read(value)
    if (read === null) throw new Refused(`${name} must be ${field.must}`)
    values[name] = read
  }
  for (const [name, field] of Object.entries(required)) {
    if (!(name in values)) throw new Refused(`${name} is missing: it must be ${field.must}`)
  }
  return values as Values<R> & Partial<Values<O>>
}
