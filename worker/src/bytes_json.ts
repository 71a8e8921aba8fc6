/**
 * JSON in which bytes survive: Buffers and Uint8Arrays come back as Buffers. Objects with a `toJSON` of their own (protobuf
 * messages) are stored as that says. The one thing that can't be stored is an object whose only key is `$bytes`.
 */

const TAG = '$bytes'

/** Null when there is no JSON for the value (undefined, a function). */
export function encodeValue(value: unknown): Buffer | null {
  const text: string | undefined = JSON.stringify(value, function (this: Record<string, unknown>, key, plain: unknown) {
    // A Buffer has a `toJSON`, an array of numbers, which has been called by now: look at what it was.
    const original = this[key]
    if (!(original instanceof Uint8Array)) return plain
    const { buffer, byteOffset, byteLength } = original
    return { [TAG]: Buffer.from(buffer, byteOffset, byteLength).toString('base64') }
  })
  return text === undefined ? null : Buffer.from(text)
}

/** `JSON.parse` without its error message, which quotes the text: that may be a key or somebody's message. */
export function parseJson(bytes: Buffer, revive?: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(bytes.toString(), revive)
  } catch {
    throw new Error('something on the disk is not the JSON that was written: check the disk and restart')
  }
}

export function decodeValue(bytes: Buffer): unknown {
  return parseJson(bytes, (_key, value) => {
    if (typeof value !== 'object' || value === null || !(TAG in value)) return value
    const encoded = value[TAG]
    return typeof encoded === 'string' && Object.keys(value).length === 1 ? Buffer.from(encoded, 'base64') : value
  })
}
