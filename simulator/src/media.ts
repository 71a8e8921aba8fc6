/**
 * What WhatsApp's media hosts do: keep uploaded bytes and give them back. The bytes are ciphertext and stay unread.
 * Not for the keys, which travel in messages only.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'

export const MEDIA_HOST = 'mmg.whatsapp.net'
export const MEDIA_LIMIT = 16 * 1024 * 1024

const UPLOAD_PATH = /^\/(?:mms|product|pps)\/[a-z-]+\/[\w%.=~-]+$/
const DOWNLOAD_PATH = /^\/v\/([0-9a-f]{64})\.enc$/

interface Range {
  readonly start: number
  /** The first byte that is not part of it. */
  readonly end: number
}

export class MediaStore {
  readonly #dir: string | null
  readonly #memory = new Map<string, Uint8Array>()

  /** Without a folder the bytes live as long as the process. */
  constructor(dir: string | null) {
    this.#dir = dir
    if (dir !== null) mkdirSync(dir, { recursive: true, mode: 0o700 })
  }

  /** Keeps the bytes and answers their direct path. The same bytes have the same path. */
  keep(bytes: Uint8Array): string {
    const name = createHash('sha256').update(bytes).digest('hex')
    if (this.#dir === null) this.#memory.set(name, Uint8Array.from(bytes))
    else writeWhole(join(this.#dir, name), bytes)
    return `/v/${name}.enc`
  }

  /** The kept bytes behind a direct path, or null. */
  find(directPath: string): Uint8Array | null {
    const name = DOWNLOAD_PATH.exec(directPath)?.[1]
    if (name === undefined) return null
    if (this.#dir === null) return this.#memory.get(name) ?? null
    const file = join(this.#dir, name)
    return existsSync(file) ? readFileSync(file) : null
  }

  handle(req: IncomingMessage, res: ServerResponse): void {
    const url = new URL(req.url ?? '/', `https://${MEDIA_HOST}`)
    if (req.method === 'POST' && UPLOAD_PATH.test(url.pathname)) this.#upload(req, res, url)
    else if (req.method === 'GET' || req.method === 'HEAD') this.#download(req, res, url)
    else refuse(req, res, 404, 'no such path: upload to /mms/<kind>/<token>, download what the upload answered')
  }

  #upload(req: IncomingMessage, res: ServerResponse, url: URL): void {
    if (!url.searchParams.get('auth')) {
      refuse(req, res, 401, 'auth is missing: ask for media_conn first and pass its token')
      return
    }
    const chunks: Buffer[] = []
    let size = 0
    let tooLarge = Number(req.headers['content-length'] ?? 0) > MEDIA_LIMIT
    if (tooLarge) {
      refuseLarge(req, res)
      return
    }
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (tooLarge) return
      if (size > MEDIA_LIMIT) {
        tooLarge = true
        refuseLarge(req, res)
      } else chunks.push(chunk)
    })
    req.on('end', () => {
      if (tooLarge) return
      const directPath = this.keep(Buffer.concat(chunks))
      answer(res, 200, { url: `https://${MEDIA_HOST}${directPath}`, direct_path: directPath })
    })
  }

  #download(req: IncomingMessage, res: ServerResponse, url: URL): void {
    const bytes = this.find(url.pathname)
    if (bytes === null) {
      refuse(req, res, 404, 'nothing is kept here: it was never uploaded, or the data folder is another one')
      return
    }
    const range = parseRange(req.headers.range, bytes.length)
    if (range === 'unsatisfiable') {
      res.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end()
      return
    }
    const part = range === null ? bytes : bytes.subarray(range.start, range.end)
    res.writeHead(range === null ? 200 : 206, {
      'content-type': 'application/octet-stream',
      'content-length': part.length,
      'accept-ranges': 'bytes',
      ...(range === null ? {} : { 'content-range': `bytes ${range.start}-${range.end - 1}/${bytes.length}` })
    })
    res.end(req.method === 'HEAD' ? undefined : part)
  }
}

/** Null: the whole. A header that is no single range of bytes is ignored, as HTTP asks. */
function parseRange(header: string | undefined, size: number): Range | 'unsatisfiable' | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '')
  if (match === null || (match[1] === '' && match[2] === '')) return null
  const [first, last] = [match[1] ?? '', match[2] ?? '']
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size }
  }
  const start = Number(first)
  const end = last === '' ? size : Math.min(Number(last) + 1, size)
  if (last !== '' && Number(last) < start) return null
  return start >= size ? 'unsatisfiable' : { start, end }
}

/** A reader never sees half of it, even if the process ends meanwhile. */
function writeWhole(file: string, bytes: Uint8Array): void {
  if (existsSync(file)) return
  writeFileSync(`${file}.new`, bytes, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

function refuseLarge(req: IncomingMessage, res: ServerResponse): void {
  refuse(req, res, 413, `too large: the simulator keeps up to ${MEDIA_LIMIT / 1024 / 1024} MiB each`)
}

/** Reads the rest of the request away: a client that still uploads would see a reset instead of the answer. */
function refuse(req: IncomingMessage, res: ServerResponse, status: number, error: string): void {
  req.resume()
  answer(res, status, { error })
}

function answer(res: ServerResponse, status: number, body: Record<string, string>): void {
  const text = JSON.stringify(body)
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
}
