import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { SocksClient, type SocksClientOptions } from 'socks'
import { SocksProxyAgent } from 'socks-proxy-agent'
import { type ProxyOptions, SocksProxy } from '../src/socks5.js'
import type { ProxyMode } from '../src/socks5_fault.js'
import { Refused } from '../src/types.js'

const LOGIN = { user: 'user', password: 'p@ss:word' }

interface Echo {
  readonly port: number
  readonly sockets: Set<Socket>
}

/** Stands where the simulator would: answers what it hears, and ends when the other side does. */
async function startEcho(t: TestContext): Promise<Echo> {
  const sockets = new Set<Socket>()
  const server: Server = createServer({ allowHalfOpen: true }, socket => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    socket.pipe(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

async function start(t: TestContext, options: Partial<ProxyOptions> = {}): Promise<{ proxy: SocksProxy; echo: Echo }> {
  const echo = await startEcho(t)
  const proxy = await SocksProxy.start({ target: { host: '127.0.0.1', port: echo.port }, login: LOGIN, ...options })
  t.after(() => proxy.close())
  return { proxy, echo }
}

async function tunnel(
  proxy: SocksProxy,
  options: Partial<SocksClientOptions> = {},
  password = LOGIN.password
): Promise<Socket> {
  const { socket } = await SocksClient.createConnection({
    proxy: { host: '127.0.0.1', port: proxy.port, type: 5, userId: LOGIN.user, password },
    command: 'connect',
    destination: { host: 'web.whatsapp.com', port: 443 },
    ...options
  })
  socket.on('error', () => undefined)
  return socket
}

/** What comes back until the given length is there. */
async function hear(socket: Socket, size: number): Promise<string> {
  let text = ''
  while (text.length < size) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    text += chunk.toString()
  }
  return text
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 5_000
  while (!condition()) {
    assert.ok(performance.now() < deadline, `still waiting for ${condition}`)
    await turn()
  }
}

test('names of WhatsApp lead to the simulator, and what was asked for is on record', async t => {
  const { proxy } = await start(t, { clock: () => 7 })
  for (const host of ['web.whatsapp.com', 'mmg.whatsapp.net', 'media-1.cdn.whatsapp.net']) {
    const socket = await tunnel(proxy, { destination: { host, port: 443 } })
    socket.write('hello')
    assert.equal(await hear(socket, 5), 'hello')
    socket.destroy()
  }
  await until(() => proxy.view().connections === 0)
  const view = proxy.view()
  assert.deepEqual(view.asked[1], { kind: 'domain', host: 'mmg.whatsapp.net', port: 443, at: 7 })
  assert.deepEqual([view.asked.length, view.bytesUp, view.bytesDown], [3, 15, 15])
})

test('socks-proxy-agent gets through with the name unresolved', async t => {
  const { proxy } = await start(t)
  const agent = new SocksProxyAgent(`socks5h://user:${encodeURIComponent(LOGIN.password)}@127.0.0.1:${proxy.port}`)
  const req = get({ agent, host: 'web.whatsapp.com', port: 443, path: '/' })
  // The echo answers with our own request, which is no HTTP response: reaching it is all that matters.
  await assert.rejects(once(req, 'response'), /Parse Error/)
  assert.equal(proxy.view().asked[0]?.kind, 'domain')
})

test('anything else is refused with reply 2 and still on record', async t => {
  const { proxy, echo } = await start(t)
  const targets = [
    { host: 'example.com', port: 443 },
    { host: 'notwhatsapp.com', port: 443 },
    { host: '127.0.0.1', port: echo.port },
    { host: '2001:db8::1', port: 443 }
  ]
  for (const destination of targets) await assert.rejects(tunnel(proxy, { destination }), /NotAllowed/)
  assert.deepEqual(
    proxy.view().asked.map(({ kind, host }) => [kind, host]),
    [
      ['domain', 'example.com'],
      ['domain', 'notwhatsapp.com'],
      ['ipv4', '127.0.0.1'],
      ['ipv6', '2001:db8:0:0:0:0:0:1']
    ]
  )
})

test('an allowed address is reached as it is, and a dead one answers that it refuses', async t => {
  const echo = await startEcho(t)
  const { proxy } = await start(t, { allow: [`127.0.0.1:${echo.port}`, '127.0.0.1:1'] })
  const socket = await tunnel(proxy, { destination: { host: '127.0.0.1', port: echo.port } })
  assert.equal(echo.sockets.size, 1)
  socket.destroy()
  await assert.rejects(tunnel(proxy, { destination: { host: '127.0.0.1', port: 1 } }), /ConnectionRefused/)
})

test('a wrong password is refused, and so is no password', async t => {
  const { proxy } = await start(t)
  await assert.rejects(tunnel(proxy, {}, 'wrong'), /Socks5 Authentication failed/)
  await assert.rejects(
    tunnel(proxy, { proxy: { host: '127.0.0.1', port: proxy.port, type: 5 } }),
    /no accepted authentication type|NoAcceptable|InvalidSocks5InitialHandshake/i
  )
})

test('a proxy without a login asks for none', async t => {
  const echo = await startEcho(t)
  const proxy = await SocksProxy.start({ target: { host: '127.0.0.1', port: echo.port }, login: null })
  t.after(() => proxy.close())
  const socket = await tunnel(proxy, { proxy: { host: '127.0.0.1', port: proxy.port, type: 5 } })
  socket.destroy()
  assert.equal(proxy.view().user, null)
})

const HANDSHAKE = Buffer.concat([
  Buffer.from([5, 2, 0, 2]),
  Buffer.from([1, LOGIN.user.length]),
  Buffer.from(LOGIN.user),
  Buffer.from([LOGIN.password.length]),
  Buffer.from(LOGIN.password),
  Buffer.from([5, 1, 0, 3, 16]),
  Buffer.from('web.whatsapp.com'),
  Buffer.from([1, 187])
])
const HANDSHAKE_ANSWER = Buffer.from([5, 2, 1, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0])

async function raw(proxy: SocksProxy): Promise<{ socket: Socket; heard: () => Buffer }> {
  const chunks: Buffer[] = []
  const socket = connect({ port: proxy.port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined)
  await once(socket, 'connect')
  return { socket, heard: () => Buffer.concat(chunks) }
}

test('a handshake that comes byte by byte is understood', async t => {
  const { proxy } = await start(t)
  const { socket, heard } = await raw(proxy)
  for (const byte of HANDSHAKE) {
    socket.write(Buffer.from([byte]))
    await turn()
  }
  socket.write('late')
  await until(() => heard().length === HANDSHAKE_ANSWER.length + 4)
  assert.deepEqual(heard(), Buffer.concat([HANDSHAKE_ANSWER, Buffer.from('late')]))
  socket.destroy()
})

test('a handshake that comes in one piece with the first data is understood', async t => {
  const { proxy } = await start(t)
  const { socket, heard } = await raw(proxy)
  socket.write(Buffer.concat([HANDSHAKE, Buffer.from('early')]))
  await until(() => heard().length === HANDSHAKE_ANSWER.length + 5)
  assert.deepEqual(heard(), Buffer.concat([HANDSHAKE_ANSWER, Buffer.from('early')]))
  socket.destroy()
})

test('a side that ended still hears the rest', async t => {
  const { proxy } = await start(t)
  const { socket, heard } = await raw(proxy)
  socket.end(Buffer.concat([HANDSHAKE, Buffer.alloc(500_000, 'x')]))
  await once(socket, 'end')
  assert.equal(heard().length, HANDSHAKE_ANSWER.length + 500_000)
  await until(() => proxy.view().connections === 0)
})

test('what is no SOCKS5, no CONNECT or no address is turned away', async t => {
  const { proxy } = await start(t, { login: null })
  const cases: [number[], number[]][] = [
    [[4, 1, 0, 80], []],
    [
      [5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80],
      [5, 0, 5, 7]
    ],
    [
      [5, 1, 0, 5, 1, 0, 9],
      [5, 0, 5, 8]
    ],
    [
      [5, 1, 2],
      [5, 0xff]
    ]
  ]
  for (const [sent, answer] of cases) {
    const { socket, heard } = await raw(proxy)
    socket.end(Buffer.from(sent))
    await once(socket, 'close')
    assert.deepEqual([...heard().subarray(0, 4)], answer)
  }
})

const FAILURES: [ProxyMode, RegExp][] = [
  ['refuse', /ECONNREFUSED/],
  ['close', /Socket closed|ECONNRESET/],
  ['garbage', /InvalidSocks5|Received invalid Socks5/i],
  ['no_method', /no accepted authentication type|NoAcceptable/i],
  ['wrong_password', /Authentication failed/]
]
for (const [mode, error] of FAILURES) {
  test(`mode ${mode} fails as it should, and heals on the same port`, async t => {
    const { proxy } = await start(t)
    const { port } = proxy
    await proxy.setFault({ mode })
    assert.equal(proxy.view().mode, mode)
    await assert.rejects(tunnel(proxy), error)
    await proxy.setFault({ mode: 'none' })
    assert.equal(proxy.port, port)
    const socket = await tunnel(proxy)
    socket.destroy()
  })
}

for (const mode of ['hang', 'hang_connect'] as const) {
  test(`mode ${mode} keeps the client waiting until it gives up`, async t => {
    const { proxy } = await start(t)
    await proxy.setFault({ mode })
    await assert.rejects(tunnel(proxy, { timeout: 400 }), /timed out/)
    assert.equal(proxy.view().asked.length, mode === 'hang' ? 0 : 1)
  })
}

test('mode reply answers each of the codes', async t => {
  const { proxy, echo } = await start(t)
  for (const reply of [1, 2, 3, 4, 5, 6, 7, 8]) {
    await proxy.setFault({ mode: 'reply', reply })
    const { socket, heard } = await raw(proxy)
    socket.end(HANDSHAKE)
    await once(socket, 'close')
    assert.deepEqual([...heard().subarray(4, 6)], [5, reply])
  }
  assert.equal(echo.sockets.size, 0)
})

test('mode refuse leaves existing connections alone', async t => {
  const { proxy } = await start(t)
  const socket = await tunnel(proxy)
  await proxy.setFault({ mode: 'refuse' })
  socket.write('still')
  assert.equal(await hear(socket, 5), 'still')
  socket.destroy()
})

test('mode freeze stalls what exists, hides that a side has gone, and lets new ones through', async t => {
  const { proxy, echo } = await start(t)
  const [left, stays] = [await tunnel(proxy), await tunnel(proxy)]
  await proxy.setFault({ mode: 'freeze' })
  left.destroy()
  stays.write('stalled')
  const fresh = await tunnel(proxy)
  fresh.write('fresh')
  assert.equal(await hear(fresh, 5), 'fresh')
  assert.deepEqual([echo.sockets.size, proxy.view().bytesUp, stays.bytesRead], [3, 5, 14])
  await proxy.setFault({ mode: 'none' })
  assert.equal(await hear(stays, 7), 'stalled')
  await until(() => echo.sockets.size === 2)
  for (const socket of [stays, fresh]) socket.destroy()
})

test('drop cuts what exists on both sides, even if frozen, and leaves the mode as it was', async t => {
  const { proxy, echo } = await start(t)
  const first = await tunnel(proxy)
  await proxy.setFault({ mode: 'freeze' })
  const ended = once(first, 'close')
  await proxy.setFault({ mode: 'drop' })
  await ended
  await until(() => echo.sockets.size === 0 && proxy.view().connections === 0)
  assert.equal(proxy.view().mode, 'freeze')
  const second = await tunnel(proxy)
  assert.equal(proxy.drop(), 1)
  await once(second, 'close')
})

test('mode slow holds each piece back', async t => {
  const { proxy } = await start(t)
  const socket = await tunnel(proxy)
  await proxy.setFault({ mode: 'slow', ms: 60 })
  const before = performance.now()
  socket.write('slow')
  assert.equal(await hear(socket, 4), 'slow')
  assert.ok(performance.now() - before >= 115, 'once on the way up, once on the way down')
  socket.destroy()
})

test('the record has an end', async t => {
  const { proxy } = await start(t)
  await proxy.setFault({ mode: 'reply', reply: 1 })
  for (let n = 0; n < 510; n += 1) {
    await assert.rejects(tunnel(proxy, { destination: { host: `n${n}.example`, port: 80 } }))
  }
  const { asked } = proxy.view()
  assert.deepEqual([asked.length, asked[0]?.host, asked.at(-1)?.host], [500, 'n10.example', 'n509.example'])
})

test('a fault that makes no sense is refused with what to do', async t => {
  const { proxy } = await start(t)
  for (const fault of [{ mode: 'reply' }, { mode: 'reply', reply: 9 }, { mode: 'slow' }, { mode: 'sulk' }]) {
    await assert.rejects(proxy.setFault(fault as { mode: ProxyMode }), Refused)
  }
  assert.equal(proxy.view().mode, 'none')
})

test('it listens where it is told to', async t => {
  const { proxy } = await start(t, { listen: '127.0.0.2' })
  const socket = connect(proxy.port, '127.0.0.2')
  await once(socket, 'connect')
  socket.destroy()
})
