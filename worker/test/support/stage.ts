/**
 * The worker that ships, as a process, between a real simulator with its SOCKS5 proxies and a server that holds every word
 * against the protocol. Nothing of it outlives `close`, not even when a test fails.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Call, Switchboard, type Told } from './switchboard.js'

const ROOT = rootFolder()
const WORKER = join(ROOT, 'worker/dist/src/main.js')
const SIMULATOR = join(ROOT, 'simulator/dist/src/main.js')
const PATIENCE_MS = 60_000
const LOOK_MS = 10

export const PHONE = '12025550101'
export const CONTACT = '12025550199'

interface Running {
  readonly whatsapp: number
  readonly control: number
  readonly ca: string
  readonly proxies: readonly { readonly n: number; readonly port: number; readonly user: string }[]
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A process with all that it wrote. */
export class Program {
  readonly process: ChildProcess
  readonly exit: Promise<Exit>
  out = ''
  err = ''

  constructor(command: string, args: readonly string[], env: Record<string, string>) {
    this.process = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.err += chunk
    })
    this.process.stdout?.on('data', (chunk: Buffer) => {
      this.out += chunk
    })
    this.exit = new Promise(resolve => this.process.once('close', (code, signal) => resolve({ code, signal })))
  }

  async end(signal: NodeJS.Signals): Promise<Exit> {
    this.process.kill(signal)
    return this.exit
  }
}

export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'switchboard-stage-'))
  readonly switchboard: Switchboard
  readonly workers: Program[] = []
  readonly #options: readonly string[]
  #simulator: Program | null = null
  #running: Running | null = null
  #messages = 0

  private constructor(switchboard: Switchboard, options: readonly string[]) {
    this.switchboard = switchboard
    this.#options = options
  }

  /**
   * `options` are further ones of the simulator's `serve`; without a `--proxy` there is one. At `address` the worker finds
   * server and proxies.
   */
  static async open(options: readonly string[] = [], address = '127.0.0.1'): Promise<Stage> {
    const stage = new Stage(await Switchboard.start(address), ['--listen', address, ...options])
    await stage.startSimulator()
    return stage
  }

  async close(): Promise<void> {
    const programs = [...this.workers, ...(this.#simulator ? [this.#simulator] : [])]
    await Promise.all(programs.map(program => program.end('SIGKILL')))
    await this.switchboard.away()
    rmSync(this.folder, { recursive: true, force: true })
    assert.deepEqual(this.switchboard.faults, [], 'the protocol was broken')
  }

  // --- the simulator ---

  /** Where the worker keeps its files. */
  get session(): string {
    return join(this.folder, 'sessions', this.switchboard.sessionId)
  }

  get running(): Running {
    assert.ok(this.#running, 'the simulator does not run')
    return this.#running
  }

  /** The first time on any ports, later on the same ones and with the same data. */
  async startSimulator(): Promise<void> {
    const again = this.#running
    const ports = again ? ['--port', again.whatsapp, '--control-port', again.control] : []
    const proxyPorts = again ? again.proxies.flatMap(({ port }) => ['--proxy-port', port]) : []
    const proxy = this.#options.includes('--proxy') ? [] : ['--proxy', 'me:a secret']
    const args = ['serve', '--data', join(this.folder, 'simulator'), '--until-stdin-closes']
    const all = [SIMULATOR, ...args, ...proxy, ...this.#options, ...ports, ...proxyPorts].map(String)
    const program = new Program(process.execPath, all, { PATH: process.env['PATH'] ?? '' })
    this.#simulator = program
    const stdout = program.process.stdout
    assert.ok(stdout)
    const line = new Promise<string>(resolve => createInterface(stdout).once('line', resolve))
    const ended = program.exit.then(() => assert.fail(`the simulator ended: ${program.err}`))
    this.#running = JSON.parse(await Promise.race([line, ended]))
  }

  async endSimulator(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.#simulator?.end(signal)
  }

  // biome-ignore lint/suspicious/noExplicitAny: the answers are the simulator's, read by tests that know them
  async control(path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST'): Promise<any> {
    const url = `http://127.0.0.1:${this.running.control}${path}`
    const response = await fetch(url, { method, body: body === undefined ? null : JSON.stringify(body) })
    const answer = await response.json()
    assert.equal(response.status, 200, `${path}: ${JSON.stringify(answer)}`)
    return answer
  }

  /** What the recipients' phones show. */
  async shown(): Promise<{ id: string; text: string; stanzas: number; delivered: boolean; read: boolean }[]> {
    return this.control('/messages')
  }

  // --- the worker ---

  /** `more` overrides single variables of its environment; `wrap` is a command that runs the one given after it. */
  startWorker(more: Record<string, string> = {}, wrap: readonly string[] = []): Program {
    const [proxy] = this.running.proxies
    const env = {
      SESSION_ID: this.switchboard.sessionId,
      PROXY_URL: `socks5h://me:a%20secret@${this.switchboard.address}:${proxy?.port}`,
      WEBHOOK_URL: this.switchboard.webhookUrl,
      WEBHOOK_SECRET: this.switchboard.webhookSecret,
      SESSIONS_DIR: join(this.folder, 'sessions'),
      NODE_EXTRA_CA_CERTS: this.running.ca,
      ...more
    }
    return this.run([...wrap, process.execPath, WORKER], env)
  }

  /** Any program, that ends with the stage at the latest. */
  run([command = '', ...args]: readonly string[], env: Record<string, string> = {}): Program {
    const program = new Program(command, args, { PATH: process.env['PATH'] ?? '', ...env })
    this.workers.push(program)
    return program
  }

  /** Provisioned, scanned and connected. */
  async linkedWorker(phone = PHONE, more: Record<string, string> = {}): Promise<Program> {
    const worker = this.startWorker(more)
    const { qr } = await this.event('QR_CODE')
    await this.control('/scan', { qr, phone })
    await this.event('CONNECTED')
    return worker
  }

  // --- what the worker tells ---

  events(type?: string): Record<string, unknown>[] {
    // As the server counts: one that is told again, because its answer was not noted before a kill, is the same one.
    const numbered = new Map<unknown, Record<string, unknown>>()
    for (const { body } of this.switchboard.of('event')) {
      const name = body['sequence'] === undefined ? body : `${body['stream']}/${body['sequence']}`
      if (!numbered.has(name)) numbered.set(name, body)
    }
    const events = [...numbered.values()]
    return events.filter(event => (type === undefined ? event['type'] !== 'PING' : event['type'] === type))
  }

  /** The data of the nth event of this type, from 1, which may still have to come. */
  async event(type: string, nth = 1): Promise<Record<string, unknown>> {
    await this.until(() => this.events(type).length >= nth, `event ${nth} of type ${type}`)
    return this.events(type)[nth - 1]?.['data'] as Record<string, unknown>
  }

  /** Hands over a message; answers the ids. */
  offer(text: string, more: Record<string, unknown> = {}): { messageId: string; whatsappId: string } {
    this.#messages += 1
    const ids = {
      messageId: this.#messages.toString(16).padStart(18, '0'),
      whatsappId: `3EB0${this.#messages.toString(16).toUpperCase().padStart(18, '0')}`
    }
    const leaseUntil = Date.now() + 60_000
    this.switchboard.offer({ message: { ...ids, to: CONTACT, text, attempt: 1, leaseUntil, ...more } })
    return ids
  }

  /** How the nth attempt ended, from 1, be it an ack or a nack. */
  async settled(nth = 1): Promise<{ call: Call; body: Record<string, unknown> }> {
    const all = (): Told[] => this.switchboard.of('ack', 'nack')
    await this.until(() => all().length >= nth, `report ${nth}`)
    return all()[nth - 1] as Told
  }

  async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const end = Date.now() + PATIENCE_MS
    while (!(await condition())) {
      const said = (): string => this.workers.map(worker => worker.err).join('---\n')
      assert.ok(Date.now() < end, `never: ${what}\n${JSON.stringify(this.events())}\n${said()}`)
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    }
  }
}

/** The environment of a worker into which modules of this folder are loaded before anything of its own. */
export function preload(...modules: string[]): { NODE_OPTIONS: string } {
  return { NODE_OPTIONS: modules.map(name => `--import ${new URL(`./${name}.js`, import.meta.url)}`).join(' ') }
}

/** Tests run from the repository or one of its packages, and their compiled form lies anywhere. */
function rootFolder(): string {
  for (let folder = process.cwd(); folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, 'simulator/package.json'))) return folder
  }
  throw new Error('run the tests from within the repository')
}
