/**
 * Loaded into a worker before anything of its own: once it is told SIGUSR2, kills it in the middle of the next thing it says to
 * WhatsApp that is big enough to be a message. Up to then it is an ordinary worker.
 */
import net from 'node:net'
import { TLSSocket } from 'node:tls'

/** Requests are smaller than this, an encrypted message is not. */
const BIG_BYTES = 250

type Write = (chunk: unknown, ...rest: unknown[]) => boolean
const sockets = net.Socket.prototype as unknown as { write: Write }
const really = sockets.write
let armed = false

process.on('SIGUSR2', () => {
  armed = true
})
sockets.write = function (this: net.Socket, chunk, ...rest) {
  const bytes = chunk instanceof Uint8Array ? chunk.length : 0
  if (armed && this instanceof TLSSocket && bytes >= BIG_BYTES) process.kill(process.pid, 'SIGKILL')
  return really.call(this, chunk, ...rest)
}
