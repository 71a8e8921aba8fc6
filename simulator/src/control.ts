/** The control API: JSON over HTTP, on loopback only. For people and tests that play the owners of the phones. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { greeting } from './control_file.js'
import { type Offer, ROUTES, type Route, Unknown } from './control_routes.js'
import { Refused } from './types.js'

const BODY_LIMIT = 256 * 1024
const LOOPBACK_HOST = /^(127\.0\.0\.1|localhost)(:\d+)?$/

export interface Control {
  readonly port: number
  close(): void
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

export async function startControl(offer: Offer, port = 0, log?: (line: string) => void): Promise<Control> {
  const server = createServer((req, res) => {
    const answered = (answer: Answer): void => {
      // What only looks would drown the rest. Bodies hold texts, so they stay out.
      if (req.method !== 'GET') log?.(`control: ${req.method} ${req.url} ${answer.status}`)
      send(res, answer)
    }
    handle(offer, req).then(answered, (error: unknown) => answered(failure(error)))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

async function handle(offer: Offer, req: IncomingMessage): Promise<Answer> {
  if (!LOOPBACK_HOST.test(req.headers.host ?? '') || req.headers.origin !== undefined) {
    // A web page that a person happens to visit must not be able to steer the simulator.
    return { status: 403, body: { error: 'call this from a program on the same machine, at http://127.0.0.1' } }
  }
  const url = new URL(req.url ?? '/', 'http://127.0.0.1')
  if (url.pathname === '/') return { status: 200, body: help() }
  const matches = ROUTES.filter(route => pattern(route).test(url.pathname))
  const route = matches.find(({ method }) => method === req.method)
  if (route === undefined) return notThere(url.pathname, matches)
  const name = pattern(route).exec(url.pathname)?.[1] ?? ''
  return { status: 200, body: await route.run(offer, { name, input: await read(req, url) }) }
}

function pattern({ path }: Route): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/, '([^/]+)')}$`)
}

function notThere(path: string, matches: readonly Route[]): Answer {
  if (matches.length > 0) {
    return { status: 405, body: { error: `use ${matches.map(({ method }) => method).join(' or ')} for ${path}` } }
  }
  const paths = ROUTES.map(route => `${route.method} ${route.path}`)
  return { status: 404, body: { error: `there is no ${path}: use one of paths, GET / explains them`, paths } }
}

function help(): string {
  const lines = ROUTES.map(({ method, path, help: words }) => `${`${method} ${path}`.padEnd(28)} ${words}`)
  return [`${greeting(process.pid)} Bodies and answers are JSON.`, '', ...lines, ''].join('\n')
}

async function read(req: IncomingMessage, url: URL): Promise<unknown> {
  if (req.method === 'GET') return Object.fromEntries([...url.searchParams].filter(([, value]) => value !== ''))
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of req) {
    size += (chunk as Buffer).length
    // Read to the end even if it is too much: a client that still writes would see a reset instead of the answer.
    if (size <= BODY_LIMIT) chunks.push(chunk as Buffer)
  }
  if (size > BODY_LIMIT) throw new Refused(`the body is too large: send ${BODY_LIMIT} bytes at most`)
  try {
    return size === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new Refused('the body is not JSON: send one JSON object')
  }
}

function failure(error: unknown): Answer {
  if (error instanceof Unknown) return { status: 404, body: { error: error.message } }
  if (error instanceof Refused) return { status: 400, body: { error: error.message } }
  return { status: 500, body: { error: error instanceof Error ? error.message : 'it failed; see the log' } }
}

function send(res: ServerResponse, { status, body }: Answer): void {
  const plain = typeof body === 'string'
  const text = plain ? body : JSON.stringify(body)
  res.writeHead(status, {
    'content-type': plain ? 'text/plain; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(text)
  })
  res.end(text)
}
