/** Everything at once, as separate programs: a Baileys that knows of no simulator, the proxy, the server, the commands. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Running } from '../src/control_file.js'
import type { ProxyView } from '../src/socks5.js'
import type { ShownMessage } from '../src/types.js'

const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url))
const DEVICE = fileURLToPath(new URL('./support/linked_device.js', import.meta.url))
const ME = '972501234567'
const YOU = '972509876543'

type Line = Record<string, unknown>

/** A child that speaks in lines of JSON, heard in any order. */
class Talker {
  readonly child: ChildProcessWithoutNullStreams
  readonly #heard: Line[] = []
  #wake: () => void = () => undefined
  #errors = ''

  constructor(t: TestContext, args: string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, args, { env })
    t.after(() => this.child.kill('SIGKILL'))
    this.child.stderr.on('data', (chunk: Buffer) => {
      this.#errors += chunk.toString()
    })
    createInterface(this.child.stdout).on('line', line => {
      this.#heard.push(JSON.parse(line) as Line)
      this.#wake()
    })
  }

  say(line: Line): void {
    this.child.stdin.write(`${JSON.stringify(line)}\n`)
  }

  /** The first line that fits, said already or yet to come. It is not heard again. */
  async hears(fits: (line: Line) => boolean, ms = 20_000): Promise<Line> {
    const deadline = AbortSignal.timeout(ms)
    for (;;) {
      const index = this.#heard.findIndex(fits)
      if (index >= 0) return this.#heard.splice(index, 1)[0] ?? {}
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve
        deadline.onabort = () => reject(new Error(`only heard ${JSON.stringify(this.#heard)} ${this.#errors}`))
      })
    }
  }
}

async function start(t: TestContext, ...options: string[]) {
  const data = mkdtempSync(join(tmpdir(), 'simulator-'))
  const args = [MAIN, 'serve', '--data', data, '--proxy', 'anna:secret', '--until-stdin-closes', ...options]
  const simulator = new Talker(t, args)
  const running = (await simulator.hears(line => 'control' in line)) as unknown as Running
  const port = running.proxies[0]?.port
  const env = { PROXY_URL: `socks5h://anna:secret@127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: running.ca }
  const device = new Talker(t, [DEVICE], env)
  t.after(async () => {
    simulator.child.stdin.end()
    if (simulator.child.exitCode === null && simulator.child.signalCode === null) await once(simulator.child, 'exit')
    rmSync(data, { recursive: true, force: true })
  })
  const run = async (...words: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...words, '--data', data], {
      timeout: 20_000
    })
    return stdout.trim()
  }
  const { qr } = await device.hears(line => 'qr' in line)
  assert.equal(await run('scan', String(qr), ME, '--name', 'Dana'), 'done')
  await device.hears(line => 'open' in line)
  return { device, run, running }
}

async function proxyView({ control }: Running): Promise<ProxyView> {
  return (await (await fetch(`http://127.0.0.1:${control}/proxies/1`)).json()) as ProxyView
}

test('a device links through the proxy, sends, is read, receives, and loses the link with the proxy', async t => {
  const { device, run, running } = await start(t)
  device.say({ to: YOU, text: 'שלום' })
  const { sent } = await device.hears(line => 'sent' in line)
  await device.hears(line => line['id'] === sent && line['status'] === 3)
  const [shown] = JSON.parse(await run('messages', '--from', ME, '--json')) as ShownMessage[]
  assert.deepEqual([shown?.id, shown?.to, shown?.text], [sent, YOU, 'שלום'])
  assert.equal(await run('read', YOU, ME), 'read 1')
  await device.hears(line => line['id'] === sent && line['status'] === 4)

  await run('send', YOU, ME, 'hello back')
  await device.hears(line => line['received'] === 'hello back')

  const hosts = new Set((await proxyView(running)).asked.map(({ kind, host }) => `${kind} ${host}`))
  assert.deepEqual([...hosts], ['domain web.whatsapp.com'])
  await run('proxy', '1', 'drop')
  await device.hears(line => line['closed'] === 428)
})

test('the owner and the server can end the link in every way, and a device meets the code that belongs to it', async t => {
  const { device, run } = await start(t)
  const endings: [string[], number][] = [
    [['drop', ME], 428],
    [['stream-error', ME, '503'], 503],
    [['replace', ME], 440]
  ]
  for (const [words, code] of endings) {
    await run(...words)
    await device.hears(line => line['closed'] === code)
    device.say({})
    await device.hears(line => 'open' in line)
  }
  await run('ban', ME)
  await device.hears(line => 'closed' in line)
  device.say({})
  await device.hears(line => line['closed'] === 403)
  assert.match(await run('state'), /BLOCKED/)
  await run('unban', ME)
  device.say({})
  await device.hears(line => 'open' in line)
  await run('log-out', ME)
  await device.hears(line => line['closed'] === 401)
})

test('a history that must be downloaded comes from the media host, through the proxy too', async t => {
  const { running } = await start(t, '--history', 'external')
  const deadline = performance.now() + 15_000
  for (;;) {
    const { asked } = await proxyView(running)
    if (asked.some(({ host }) => host === 'mmg.whatsapp.net')) break
    assert.ok(performance.now() < deadline, 'the media host was never asked for')
    await new Promise(resolve => setTimeout(resolve, 50))
  }
})
