import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SocksProxyAgent } from 'socks-proxy-agent'
import type { Running } from '../src/control_file.js'
import type { StateView } from '../src/describe.js'

const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url))
const ME = '972501234567'

interface Served {
  readonly child: ChildProcessWithoutNullStreams
  readonly running: Running
  readonly line: string
}

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'simulator-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A test that is cut off must leave no simulator behind. */
function serve(t: TestContext, data: string, ...args: string[]): Promise<Served> {
  return launch(t, data, '--until-stdin-closes', ...args)
}

async function launch(t: TestContext, data: string, ...args: string[]): Promise<Served> {
  const child = spawn(process.execPath, [MAIN, 'serve', '--data', data, ...args])
  t.after(() => child.kill('SIGKILL'))
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()))
  const lines = createInterface(child.stdout)
  const [line] = (await Promise.race([
    once(lines, 'line'),
    once(child, 'exit').then(() => assert.fail(`it ended: ${errors.join('')}`))
  ])) as [string]
  return { child, running: JSON.parse(line) as Running, line }
}

async function stop({ child }: Served): Promise<number> {
  const before = performance.now()
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
  return performance.now() - before
}

function cli(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise(resolve => {
    const child = execFile(process.execPath, [MAIN, ...args], { timeout: 20_000 }, (_, out, err) => {
      resolve({ code: child.exitCode ?? -1, out: out.trim(), err: err.trim() })
    })
  })
}

test('serve says in one line where everything is, without passwords, and stops within a second', async t => {
  const data = folder(t)
  const served = await serve(t, data, '--proxy', 'anna:secret-word', '--proxy', 'none')
  const { running, line } = served
  assert.deepEqual(
    running.proxies.map(({ n, user }) => [n, user]),
    [
      [1, 'anna'],
      [2, null]
    ]
  )
  const note = join(data, 'control.json')
  assert.equal(readFileSync(note, 'utf8').trim(), line)
  assert.equal(statSync(note).mode & 0o777, 0o600)
  assert.ok(!line.includes('secret-word'))
  assert.ok((await stop(served)) < 1000)
  assert.ok(!existsSync(note))
})

test('a restart has the same ports when they are given, and the same authority', async t => {
  const data = folder(t)
  const first = await serve(t, data, '--proxy', 'a:b')
  const { whatsapp, control, ca, proxies } = first.running
  const authority = readFileSync(ca, 'utf8')
  await stop(first)
  const ports = [
    '--port',
    String(whatsapp),
    '--control-port',
    String(control),
    '--proxy-port',
    String(proxies[0]?.port)
  ]
  const second = await serve(t, data, '--proxy', 'a:b', ...ports)
  assert.deepEqual({ ...second.running, pid: 0 }, { ...first.running, pid: 0 })
  assert.equal(readFileSync(second.running.ca, 'utf8'), authority)
  await stop(second)
})

test('it ends when its stdin closes, if asked to', async t => {
  const { child } = await serve(t, folder(t))
  child.stdin.end()
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
})

test('it stays when its stdin closes, if not asked to', async t => {
  const data = folder(t)
  const served = await launch(t, data)
  served.child.stdin.end()
  assert.equal((await cli('state', '--data', data)).code, 0)
  await stop(served)
})

test('a second one on the same folder is refused, one after a kill is not', async t => {
  const data = folder(t)
  const first = await serve(t, data)
  const second = await cli('serve', '--data', data)
  assert.equal(second.code, 1)
  assert.match(second.err, /already runs on .*: stop it first/)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  await stop(await serve(t, data))
})

test('WhatsApp is reached through a proxy by name, with TLS that ca.pem vouches for', async t => {
  const served = await serve(t, folder(t), '--proxy', 'a:b')
  const agent = new SocksProxyAgent(`socks5h://a:b@127.0.0.1:${served.running.proxies[0]?.port}`)
  const ca = readFileSync(served.running.ca, 'utf8')
  const path = '/mms/image/token?auth=x'
  const req = request({ host: 'mmg.whatsapp.net', port: 443, path, method: 'POST', agent, ca }).end('ciphertext')
  const [res] = await once(req, 'response')
  assert.equal(res.statusCode, 200)
  res.resume()
  await stop(served)
})

test('the commands steer the one that runs', async t => {
  const data = folder(t)
  const served = await serve(t, data, '--proxy', 'a:b')
  const run = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await cli(...args, '--data', data)
    assert.equal(code, 0, err)
    return out
  }
  const id = await run('fault', 'ack_error', '--phone', ME, '--code', '429', '--times', '2')
  assert.match(await run('faults'), /"kind":"ack_error".*"code":429/)
  assert.equal(await run('heal', id), 'done')
  assert.equal(await run('faults'), 'none')
  assert.equal(await run('proxy', '1', 'reply', '--reply', '5'), 'done')
  assert.match(await run('state'), /1 port \d+ user a mode reply/)
  const state = JSON.parse(await run('state', '--json')) as StateView
  assert.equal(state.proxies[0]?.mode, 'reply')
  assert.equal(await run('absent', ME), 'done')
  assert.equal(await run('messages'), 'none')
  assert.equal(await run('wire', '--from', ME), 'none')
  const byPort = await cli('state', '--control', String(served.running.control))
  assert.equal(byPort.code, 0)
  await stop(served)
})

test('a command that cannot be done says what to do', async t => {
  const data = folder(t)
  const cases: [string[], RegExp][] = [
    [['state'], /no simulator runs on .*: start one with `serve --data/],
    [['state', '--control', '1'], /nothing answers on the control port 1/],
    [['scan', 'x'], /use: scan <qr> <phone>/],
    [['sulk'], /no command sulk: `help` lists them/],
    [['toString'], /no command toString/],
    [['state', '--sulk'], /Unknown option '--sulk'/],
    [['serve', '--proxy', 'anna'], /--proxy must be user:password/],
    [['serve', '--history', 'x'], /--history must be inline or external/],
    [['serve', '--port', '70000'], /--port must be a port number/]
  ]
  for (const [args, error] of cases) {
    const { code, out, err } = await cli(...args, '--data', data)
    assert.deepEqual([code, out], [1, ''])
    assert.match(err, error)
    assert.ok(!err.includes('    at '), 'no stack')
  }
  const served = await serve(t, data)
  const bad = await cli('scan', 'no-qr', '12', '--data', data)
  assert.equal(bad.code, 1)
  assert.match(bad.err, /phone must be a phone number/)
  const taken = await cli('serve', '--data', folder(t), '--control-port', String(served.running.control))
  assert.match(taken.err, /^port \d+ is taken: stop what uses it, or choose another one$/)
  await stop(served)
})

test('help lists every command, fault and proxy mode', async () => {
  const { code, out } = await cli('help')
  assert.equal(code, 0)
  for (const word of ['serve', 'enter-code', 'log-out', 'drop_before_ack', 'hang_connect', '--until-stdin-closes']) {
    assert.ok(out.includes(word), word)
  }
})
