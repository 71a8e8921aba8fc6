/** The network border: one port for the websocket of clients and for the media host. */

import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Addressing } from './addresses.js'
import { Exchange } from './exchange.js'
import type { MediaStore } from './media.js'
import type { WhatsApp } from './types.js'
import { Simulator } from './whatsapp.js'

const SOCKET_PATH = '/ws/chat'

export interface WhatsAppOptions {
  /** Where everything is kept; null: in memory only. */
  readonly dataDir: string | null
  readonly port?: number
  readonly tls?: { readonly key: string; readonly cert: string }
  readonly media?: MediaStore
  readonly log?: (line: string) => void
  readonly historyAs?: 'inline' | 'external'
  /** Whether messages of contacts carry their LID (and the number beside it) or their number. */
  readonly inboundBy?: Addressing
  readonly clock?: () => number
}

export async function startWhatsApp(options: WhatsAppOptions): Promise<WhatsApp> {
  const exchange = new Exchange({
    dataDir: options.dataDir,
    media: options.media ?? null,
    historyAs: options.historyAs ?? 'inline',
    inboundBy: options.inboundBy ?? 'lid',
    clock: options.clock ?? Date.now,
    log: options.log ?? (() => undefined)
  })
  const onRequest = (req: IncomingMessage, res: ServerResponse) => {
    if (options.media) options.media.handle(req, res)
    else res.writeHead(404).end()
  }
  const server = options.tls ? createTlsServer(options.tls, onRequest) : createServer(onRequest)
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const fault = exchange.faults.strike('http_error', null)
    if (fault) refuse(socket, fault.code ?? 503)
    else if (new URL(req.url ?? '/', 'http://localhost').pathname !== SOCKET_PATH) refuse(socket, 404)
    else sockets.handleUpgrade(req, socket, head, websocket => exchange.accept(websocket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return new Simulator(exchange, port, async () => {
    server.closeAllConnections()
    await new Promise<void>(resolve => server.close(() => resolve()))
  })
}

function refuse(socket: Duplex, code: number): void {
  socket.on('error', () => socket.destroy())
  socket.end(`HTTP/1.1 ${code} ${STATUS_CODES[code] ?? 'Error'}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
}
