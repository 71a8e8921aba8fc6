/** The words of SOCKS5 (RFC 1928, RFC 1929) from the proxy's side, read from a socket however its bytes are cut. */
import type { Socket } from 'node:net'

export const METHOD_NONE = 0
export const METHOD_PASSWORD = 2
export const NO_METHOD = 0xff

export const REPLY = { done: 0, failed: 1, notAllowed: 2, unreachable: 4, refused: 5, badCommand: 7, badAddress: 8 }

export type AddressKind = 'ipv4' | 'domain' | 'ipv6'

export interface Address {
  readonly kind: AddressKind
  readonly host: string
  readonly port: number
}

/** The other side ended, or does not speak SOCKS5. There is nothing to answer. */
export class NotSocks extends Error {
  override readonly name = 'NotSocks'
}

/** The request can't be met; `reply` is the answer. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest'
  readonly reply: number

  constructor(reply: number, message: string) {
    super(message)
    this.reply = reply
  }
}

/** The methods that the client offers. */
export async function readGreeting(socket: Socket): Promise<readonly number[]> {
  const [version, count] = await take(socket, 2)
  if (version !== 5) throw new NotSocks('the first byte is not 5: use a SOCKS5 client')
  return [...(await take(socket, count ?? 0))]
}

export async function readPassword(socket: Socket): Promise<{ user: string; password: string }> {
  const [version, userLength] = await take(socket, 2)
  if (version !== 1) throw new NotSocks('the password message has another version than 1')
  const user = (await take(socket, userLength ?? 0)).toString('utf8')
  const [passwordLength] = await take(socket, 1)
  const password = (await take(socket, passwordLength ?? 0)).toString('utf8')
  return { user, password }
}

export async function readRequest(socket: Socket): Promise<Address> {
  const [version, command, , type] = await take(socket, 4)
  if (version !== 5) throw new NotSocks('the request has another version than 5')
  const address = await readAddress(socket, type ?? 0)
  const port = (await take(socket, 2)).readUInt16BE()
  if (command !== 1) throw new BadRequest(REPLY.badCommand, 'only CONNECT is spoken here')
  return { ...address, port }
}

/** An answer to a request. The bound address is of no use to anyone and left at zero. */
export function replyBytes(reply: number): Buffer {
  return Buffer.from([5, reply, 0, 1, 0, 0, 0, 0, 0, 0])
}

async function readAddress(socket: Socket, type: number): Promise<{ kind: AddressKind; host: string }> {
  if (type === 1) return { kind: 'ipv4', host: (await take(socket, 4)).join('.') }
  if (type === 3) {
    const [length] = await take(socket, 1)
    return { kind: 'domain', host: (await take(socket, length ?? 0)).toString('utf8') }
  }
  if (type === 4) {
    const words = (await take(socket, 16)).toString('hex').match(/.{4}/g) ?? []
    return { kind: 'ipv6', host: words.map(word => Number.parseInt(word, 16).toString(16)).join(':') }
  }
  throw new BadRequest(REPLY.badAddress, 'the address is neither IPv4, IPv6 nor a name')
}

/** Exactly `size` bytes. What came with them goes back into the socket for the next reader. */
async function take(socket: Socket, size: number): Promise<Buffer> {
  let bytes = Buffer.alloc(0)
  while (bytes.length < size) {
    const chunk: Buffer | null = socket.read()
    if (chunk !== null) bytes = Buffer.concat([bytes, chunk])
    else if (socket.readableEnded || socket.destroyed) throw new NotSocks('the client left')
    else await change(socket)
  }
  if (bytes.length > size) socket.unshift(bytes.subarray(size))
  return bytes.subarray(0, size)
}

function change(socket: Socket): Promise<void> {
  const events = ['readable', 'end', 'close']
  return new Promise(resolve => {
    const wake = () => {
      for (const event of events) socket.off(event, wake)
      resolve()
    }
    for (const event of events) socket.on(event, wake)
  })
}
