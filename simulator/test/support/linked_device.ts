/**
 * A program of its own: an unmodified Baileys that dials WhatsApp through the proxy in PROXY_URL, as a worker does. It
 * says what happens in lines of JSON on stdout; on stdin `{to, text}` sends, and `{}` dials again.
 */
import '../../src/silence.js'
import { createInterface } from 'node:readline'
import { type AuthenticationState, initAuthCreds, makeWASocket, type SignalDataTypeMap, type WASocket } from 'baileys'
import { socksDispatcher } from 'fetch-socks'
import pino from 'pino'
import { SocksProxyAgent } from 'socks-proxy-agent'

const RESTART_REQUIRED = 515

function say(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function memoryAuth(): AuthenticationState {
  const kept: Record<string, Record<string, unknown>> = {}
  return {
    creds: initAuthCreds(),
    keys: {
      get: (type, ids) => {
        const entries = kept[type] ?? {}
        const found = ids.flatMap(id => (entries[id] ? [[id, entries[id]]] : []))
        return Object.fromEntries(found) as Record<string, SignalDataTypeMap[typeof type]>
      },
      set: data => {
        for (const [type, entries] of Object.entries(data)) {
          kept[type] = { ...kept[type], ...entries }
        }
      }
    }
  }
}

function dial(auth: AuthenticationState, proxy: URL, onRestart: () => void): WASocket {
  const login = { userId: proxy.username, password: proxy.password }
  const dispatcher = socksDispatcher({ type: 5, host: proxy.hostname, port: Number(proxy.port), ...login })
  const socket = makeWASocket({
    auth,
    agent: new SocksProxyAgent(proxy),
    options: { dispatcher } as unknown as RequestInit,
    logger: pino({ level: 'silent' })
  })
  socket.ev.on('creds.update', update => Object.assign(auth.creds, update))
  socket.ev.on('connection.update', ({ qr, connection, lastDisconnect }) => {
    if (qr !== undefined) say({ qr })
    if (connection === 'open') say({ open: true })
    if (connection !== 'close') return
    const error = lastDisconnect?.error as { output?: { statusCode?: number }; message?: string } | undefined
    if (error?.output?.statusCode === RESTART_REQUIRED) onRestart()
    else say({ closed: error?.output?.statusCode ?? 0, why: error?.message })
  })
  socket.ev.on('messages.upsert', ({ messages }) => {
    // A receipt that comes at once is merged into the news of our own message.
    for (const { key, message, status } of messages) {
      say(key.fromMe ? { id: key.id, status } : { received: message?.conversation })
    }
  })
  socket.ev.on('messages.update', updates => {
    for (const { key, update } of updates) say({ id: key.id, status: update.status })
  })
  return socket
}

const proxy = new URL(process.env['PROXY_URL'] ?? '')
const auth = memoryAuth()
let socket = dial(auth, proxy, restart)

function restart(): void {
  socket = dial(auth, proxy, restart)
}

createInterface(process.stdin).on('line', line => {
  const { to, text } = JSON.parse(line) as { to?: string; text: string }
  if (to === undefined) {
    restart()
    return
  }
  socket.sendMessage(`${to}@s.whatsapp.net`, { text }).then(
    sent => say({ sent: sent?.key.id }),
    (error: unknown) => say({ failed: String(error) })
  )
})
