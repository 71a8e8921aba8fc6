import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { ensureTls, type Identity } from '../src/tls.js'

const DAY_MS = 24 * 60 * 60 * 1000

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'tls-'))
  t.after(() => rmSync(dir, { recursive: true }))
  return dir
}

async function serve(t: TestContext, identity: Identity): Promise<number> {
  const server = createServer({ key: identity.key, cert: identity.cert }, (_, res) => res.end('hello'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function visit(port: number, servername: string, ca: string | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port, servername, ca, headers: { host: servername } }, res => {
      res.resume()
      resolve(res.statusCode ?? 0)
    })
    req.on('error', reject).end()
  })
}

test('a client that trusts ca.pem reaches every name of WhatsApp and no other', async t => {
  const tls = await ensureTls(folder(t))
  const port = await serve(t, tls)
  const ca = readFileSync(tls.caFile, 'utf8')
  for (const name of ['web.whatsapp.com', 'g.whatsapp.com', 'mmg.whatsapp.net', 'pps.whatsapp.net', 'localhost']) {
    assert.equal(await visit(port, name, ca), 200, name)
  }
  await assert.rejects(visit(port, 'example.com', ca), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
})

test('a client that does not trust it refuses', async t => {
  const port = await serve(t, await ensureTls(folder(t)))
  await assert.rejects(visit(port, 'web.whatsapp.com', undefined), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
})

test('another program trusts it by NODE_EXTRA_CA_CERTS alone', async t => {
  const tls = await ensureTls(folder(t))
  const port = await serve(t, tls)
  const program = `fetch('https://localhost:${port}').then(r => r.text()).then(t => process.stdout.write(t))`
  const env = { NODE_EXTRA_CA_CERTS: tls.caFile }
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { env, timeout: 20_000 })
  assert.equal(stdout, 'hello')
})

test('a restart finds the same authority and certificate, with keys only the owner reads', async t => {
  const dir = folder(t)
  const [first, second] = [await ensureTls(dir), await ensureTls(dir)]
  assert.deepEqual(second, first)
  for (const key of ['ca.key', 'server.key']) assert.equal(statSync(join(dir, key)).mode & 0o777, 0o600)
})

test('a certificate about to run out is renewed under the same authority', async t => {
  const dir = folder(t)
  const first = await ensureTls(dir)
  const ca = readFileSync(first.caFile, 'utf8')
  const second = await ensureTls(dir, Date.now() + 340 * DAY_MS)
  assert.notEqual(second.cert, first.cert)
  assert.equal(readFileSync(second.caFile, 'utf8'), ca)
})

test('half-written files are made anew, and what hangs on them too', async t => {
  const dir = folder(t)
  const first = await ensureTls(dir)
  writeFileSync(join(dir, 'ca.key'), 'half')
  const second = await ensureTls(dir)
  assert.notEqual(second.cert, first.cert)
  const port = await serve(t, second)
  assert.equal(await visit(port, 'web.whatsapp.com', readFileSync(second.caFile, 'utf8')), 200)
})
