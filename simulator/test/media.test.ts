import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { MEDIA_LIMIT, MediaStore } from '../src/media.js'

async function serve(t: TestContext, store: MediaStore): Promise<string> {
  const server = createServer((req, res) => store.handle(req, res))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function upload(base: string, bytes: Uint8Array): Promise<{ url: string; direct_path: string }> {
  const reply = await fetch(`${base}/mms/image/dG9rZW4%3D?auth=a&token=dG9rZW4%3D`, { method: 'POST', body: bytes })
  assert.equal(reply.status, 200)
  return (await reply.json()) as { url: string; direct_path: string }
}

async function bytesOf(reply: Response): Promise<Buffer> {
  return Buffer.from(await reply.arrayBuffer())
}

test('what is uploaded can be downloaded from the path that the upload answered', async t => {
  const base = await serve(t, new MediaStore(null))
  const bytes = randomBytes(100_000)
  const answer = await upload(base, bytes)
  assert.equal(answer.url, `https://mmg.whatsapp.net${answer.direct_path}`)
  const reply = await fetch(base + answer.direct_path)
  assert.equal(reply.status, 200)
  assert.deepEqual(await bytesOf(reply), bytes)
})

test('bytes kept in a folder are there after a restart', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'media-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const path = new MediaStore(join(dir, 'media')).keep(Buffer.from('ciphertext'))
  const base = await serve(t, new MediaStore(join(dir, 'media')))
  assert.equal(await (await fetch(base + path)).text(), 'ciphertext')
})

test('a download can ask for a part', async t => {
  const store = new MediaStore(null)
  const base = await serve(t, store)
  const path = store.keep(Buffer.from('0123456789'))
  const cases: [string, number, string, string | null][] = [
    ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=0-99', 206, '0123456789', 'bytes 0-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=10-', 416, '', 'bytes */10'],
    ['bytes=4-2', 200, '0123456789', null],
    ['lines=1-2', 200, '0123456789', null]
  ]
  for (const [range, status, text, contentRange] of cases) {
    const reply = await fetch(base + path, { headers: { range } })
    assert.deepEqual(
      [reply.status, await reply.text(), reply.headers.get('content-range')],
      [status, text, contentRange]
    )
  }
})

test('an upload without auth is refused', async t => {
  const base = await serve(t, new MediaStore(null))
  const reply = await fetch(`${base}/mms/image/token`, { method: 'POST', body: 'x' })
  assert.equal(reply.status, 401)
})

test('too large an upload is refused with 413 and the reason, announced or not', async t => {
  const base = await serve(t, new MediaStore(null))
  const large = new Uint8Array(MEDIA_LIMIT + 1)
  const bodies = [large, new Blob([large]).stream()]
  for (const body of bodies) {
    const reply = await fetch(`${base}/mms/video/token?auth=a`, { method: 'POST', body, duplex: 'half' })
    assert.equal(reply.status, 413)
    assert.match(((await reply.json()) as { error: string }).error, /16 MiB/)
  }
  const most = await upload(base, large.subarray(1))
  assert.equal((await bytesOf(await fetch(base + most.direct_path))).length, MEDIA_LIMIT)
})

test('anything else is not found, and no path leads out of the folder', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'media-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const base = await serve(t, new MediaStore(dir))
  for (const path of ['/', '/v/../../etc/passwd', '/v/%2e%2e%2fpasswd.enc', `/v/${'0'.repeat(64)}.enc`]) {
    assert.equal((await fetch(base + path)).status, 404)
  }
  assert.equal((await fetch(`${base}/v/x`, { method: 'POST', body: 'x' })).status, 404)
})
