import assert from 'node:assert/strict'
import { request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { startControl } from '../src/control.js'
import { ROUTES } from '../src/control_routes.js'
import { SocksProxy } from '../src/socks5.js'
import { account, FakeWhatsApp } from './support/fake_whatsapp.js'

const ME = '972501234567'
const YOU = '972509876543'

async function start(t: TestContext) {
  const whatsapp = new FakeWhatsApp()
  const login = { user: 'u', password: 'secret' }
  const proxy = await SocksProxy.start({ target: { host: '127.0.0.1', port: 1 }, login })
  const control = await startControl({ whatsapp, proxies: [proxy] })
  t.after(() => {
    control.close()
    proxy.close()
  })
  async function call(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
    const json = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    const reply = await fetch(`http://127.0.0.1:${control.port}${path}`, { method, ...json })
    return { status: reply.status, body: await reply.json() }
  }
  return { whatsapp, proxy, control, call }
}

function errorOf({ body }: { body: unknown }): string {
  return (body as { error: string }).error
}

test('the state shows everything and no password', async t => {
  const { whatsapp, call, proxy } = await start(t)
  whatsapp.list.push(account(ME))
  const { status, body } = await call('GET', '/state')
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(body as object), ['accounts', 'pending', 'faults', 'proxies', 'requests'])
  const { proxies } = body as { proxies: unknown[] }
  assert.deepEqual(proxies, [{ n: 1, ...proxy.view() }])
  assert.ok(!JSON.stringify(body).includes('secret'))
})

test('each call reaches the server with its fields', async t => {
  const { whatsapp, call } = await start(t)
  const calls: [string, string, unknown, unknown][] = [
    ['GET', `/messages?from=${ME}&to=`, undefined, ['shown', { from: ME }]],
    ['GET', '/wire', undefined, ['wire', {}]],
    ['POST', '/scan', { qr: '2@x', phone: ME, name: 'Dana' }, ['scan', '2@x', ME, 'Dana']],
    ['POST', '/enter-code', { code: 'ABCD1234', phone: ME }, ['enterCode', 'ABCD1234', ME, undefined]],
    ['POST', '/send', { from: `+${YOU}`, to: ME, text: 'hi', id: 'X1' }, ['sendFrom', YOU, ME, 'hi', { id: 'X1' }]],
    ['POST', '/read', { contact: YOU, from: ME }, ['read', YOU, ME, undefined]],
    ['POST', '/absent', { phones: [YOU], absent: true }, ['setAbsent', [YOU], true]],
    ['POST', '/behave', { readAfterMs: null }, ['behave', { readAfterMs: null }]],
    ['POST', '/behave', { deliveredAfterMs: 0, readAfterMs: 5 }, ['behave', { deliveredAfterMs: 0, readAfterMs: 5 }]],
    ['POST', '/ban', { phone: ME }, ['ban', ME]],
    ['POST', '/unban', { phone: ME }, ['unban', ME]],
    ['POST', '/log-out', { phone: ME }, ['logOut', ME]],
    ['POST', '/replace', { phone: ME }, ['replace', ME]],
    ['POST', '/stream-error', { phone: ME, code: 503 }, ['streamError', ME, 503]]
  ]
  for (const [method, path, body, expected] of calls) {
    const reply = await call(method, path, body)
    assert.equal(reply.status, 200, `${path}: ${JSON.stringify(reply.body)}`)
    assert.deepEqual(whatsapp.calls.pop(), expected)
  }
  assert.deepEqual((await call('POST', '/send', { from: YOU, to: ME, text: 'hi' })).body, { id: 'AB12' })
  assert.deepEqual((await call('POST', '/read', { contact: YOU, from: ME })).body, { count: 1 })
})

test('faults are set, listed and healed', async t => {
  const { call, whatsapp } = await start(t)
  const fault = { kind: 'ack_error', phone: ME, code: 429, times: 2 }
  assert.deepEqual((await call('POST', '/faults', fault)).body, { ...fault, id: 1, hits: 0 })
  assert.equal((await call('DELETE', '/faults/1')).status, 200)
  assert.deepEqual(whatsapp.faults(), [])
  const again = await call('DELETE', '/faults/1')
  assert.deepEqual([again.status, errorOf(again)], [404, 'there is no fault 1: GET /state lists those that are set'])
})

test('proxies take faults and heal', async t => {
  const { call, proxy } = await start(t)
  const reply = await call('POST', '/proxies/1/fault', { mode: 'reply', reply: 5 })
  assert.equal((reply.body as { mode: string }).mode, 'reply')
  assert.equal(proxy.view().mode, 'reply')
  await call('POST', '/proxies/1/fault', { mode: 'none' })
  assert.deepEqual((await call('GET', '/proxies/1')).body, { n: 1, ...proxy.view() })
  assert.deepEqual((await call('POST', '/proxies/1/drop')).body, { count: 0 })
  assert.equal((await call('POST', '/proxies/1/fault', { mode: 'reply' })).status, 400)
  for (const n of ['0', '2', 'x', '1.0']) assert.equal((await call('GET', `/proxies/${n}`)).status, 404)
})

test('bad input is refused with what to do, and reaches nobody', async t => {
  const { call, whatsapp } = await start(t)
  const cases: [string, unknown, RegExp][] = [
    ['/scan', '{', /not JSON/],
    ['/scan', '[]', /send a JSON object with qr, phone/],
    ['/scan', { phone: ME }, /qr is missing/],
    ['/scan', { qr: '2@x', phone: '12' }, /phone must be a phone number/],
    ['/scan', { qr: '2@x', phone: ME, nam: 'x' }, /no field nam: known are qr, phone, name/],
    ['/scan', { qr: '2@x', phone: ME, toString: 'x' }, /no field toString/],
    ['/absent', { phones: ME, absent: true }, /list of phone numbers/],
    ['/absent', { phones: ['1'], absent: true }, /list of phone numbers/],
    ['/behave', { readAfterMs: -1 }, /whole number from 0 up, or null/],
    ['/faults', { kind: 'sulk' }, /kind must be one of login_failure/],
    ['/drop', { phone: ME }, /is not linked: scan/],
    ['/send', { from: YOU, to: ME, text: 'x'.repeat(300_000) }, /too large/]
  ]
  for (const [path, body, error] of cases) {
    const reply = await call('POST', path, body)
    assert.equal(reply.status, 400)
    assert.match(errorOf(reply), error)
  }
  assert.deepEqual(whatsapp.calls, [])
})

test('an unknown path lists what exists, a wrong method says the right one, and / explains', async t => {
  const { call, control } = await start(t)
  const unknown = await call('GET', '/nothing')
  assert.equal(unknown.status, 404)
  assert.equal((unknown.body as { paths: string[] }).paths.length, ROUTES.length)
  const wrong = await call('GET', '/scan')
  assert.deepEqual([wrong.status, errorOf(wrong)], [405, 'use POST for /scan'])
  const help = await (await fetch(`http://127.0.0.1:${control.port}/`)).text()
  for (const { method, path } of ROUTES) assert.ok(help.includes(`${method} ${path}`))
})

test('what was done is logged in a line without its texts', async t => {
  const lines: string[] = []
  const control = await startControl({ whatsapp: new FakeWhatsApp(), proxies: [] }, 0, line => lines.push(line))
  t.after(() => control.close())
  const base = `http://127.0.0.1:${control.port}`
  await fetch(`${base}/send`, { method: 'POST', body: JSON.stringify({ from: YOU, to: ME, text: 'private words' }) })
  await fetch(`${base}/ban`, { method: 'POST' })
  await fetch(`${base}/state`)
  assert.deepEqual(lines, ['control: POST /send 200', 'control: POST /ban 400'])
})

test('a web page cannot steer it', async t => {
  const { control, whatsapp } = await start(t)
  for (const headers of [{ origin: 'http://127.0.0.1' }, { host: 'evil.example' }]) {
    const status = await new Promise(resolve => {
      const req = request({ port: control.port, host: '127.0.0.1', path: '/ban', method: 'POST', headers })
      req.on('response', res => resolve(res.resume().statusCode)).end(JSON.stringify({ phone: ME }))
    })
    assert.equal(status, 403)
  }
  assert.deepEqual(whatsapp.calls, [])
})
