/** What leaves a worker, and by which way: its proxy and its server are the only ones, and neither learns a secret. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { AuthStore } from '../src/auth_store.js'
import { Namespace, withoutNamespaces } from './support/namespace.js'
import { watchSockets } from './support/sockets.js'
import { CONTACT, PHONE, type Program, Stage } from './support/stage.js'

const EXTERNAL = ['--history', 'external']
const WHATSAPP = 'web.whatsapp.com'
const MEDIA = 'mmg.whatsapp.net'
const SENT = 'a word for one person only'
const RECEIVED = 'an answer for us only'

async function stageFor(t: TestContext, ...args: Parameters<typeof Stage.open>): Promise<Stage> {
  const stage = await Stage.open(...args)
  t.after(() => stage.close())
  return stage
}

/** Links, sends, receives, and downloads the history. */
async function live(stage: Stage): Promise<void> {
  const { qr } = await stage.event('QR_CODE')
  await stage.control('/scan', { qr, phone: PHONE })
  await stage.event('CONNECTED')
  stage.offer(SENT)
  assert.equal((await stage.settled()).call, 'ack')
  await stage.control('/send', { from: CONTACT, to: PHONE, text: RECEIVED })
  assert.equal((await stage.event('MESSAGE_RECEIVED'))['text'], RECEIVED)
  await stage.until(async () => (await asked(stage)).includes(`domain ${MEDIA}:443`), 'it downloads its history')
  await stage.until(async () => (await stage.control('/state')).requests['receipt:hist_sync:-'] === 1, 'it has it')
}

async function asked(stage: Stage): Promise<string[]> {
  const proxy: { asked: { kind: string; host: string; port: number }[] } = await stage.control('/proxies/1')
  return [...new Set(proxy.asked.map(({ kind, host, port }) => `${kind} ${host}:${port}`))].sort()
}

function pidOf(worker: Program): number {
  assert.ok(worker.process.pid)
  return worker.process.pid
}

describe('a worker', () => {
  test('opens connections to its proxy and its server only, asks for names, and listens nowhere', async t => {
    const stage = await stageFor(t, EXTERNAL)
    const worker = stage.startWorker()
    const watch = watchSockets(pidOf(worker))
    await live(stage)
    const open = watch.stop().filter(({ kind }) => kind !== 'unix') // its standard streams
    const [proxy] = stage.running.proxies
    const ways = [`127.0.0.1:${proxy?.port}`, new URL(stage.switchboard.webhookUrl).host].sort()
    assert.ok(open.every(({ listens }) => !listens))
    const reached = new Set(open.map(({ kind, remote }) => `${kind} ${remote}`))
    assert.deepEqual(
      [...reached].sort(),
      ways.map(way => `tcp ${way}`)
    )
    assert.deepEqual(await asked(stage), [`domain ${MEDIA}:443`, `domain ${WHATSAPP}:443`])
  })

  test('does all its work in a network without names and without any other way out', {
    skip: withoutNamespaces()
  }, async t => {
    const namespace = Namespace.make()
    t.after(() => namespace.remove())
    const stage = await stageFor(t, EXTERNAL, namespace.host)
    await assertNoWayOut(stage, namespace)
    stage.startWorker({}, namespace.wrap)
    await live(stage)
    assert.deepEqual(await asked(stage), [`domain ${MEDIA}:443`, `domain ${WHATSAPP}:443`])
  })

  test('says nothing of texts, passwords or keys, not even when sessions are made anew', async t => {
    const stage = await stageFor(t)
    const worker = await stage.linkedWorker()
    await stage.control('/send', { from: CONTACT, to: PHONE, text: RECEIVED })
    await stage.event('MESSAGE_RECEIVED')
    // From the second failure on a phone brings new keys, at which libsignal prints the session it gives up.
    await stage.control('/faults', { kind: 'undecryptable', times: 2 })
    stage.offer(SENT)
    await stage.until(async () => (await stage.shown()).length === 1, 'the phone can read it in the end')
    assert.equal((await stage.shown())[0]?.stanzas, 3)
    await stage.control('/proxies/1/drop', {})
    await stage.event('CONNECTED', 2)
    await worker.end('SIGTERM')

    assert.equal(worker.out, '')
    const lines = worker.err.trimEnd().split('\n')
    assert.ok(lines.every(line => JSON.parse(line).event !== undefined))
    const told = stage.switchboard.told.map(({ raw }) => raw)
    const heard = told.filter(raw => !raw.includes('"MESSAGE_RECEIVED"')).join('\n')
    for (const [name, secret] of secretsOf(stage)) {
      assert.ok(!worker.err.includes(secret), `${name} is in the log`)
      assert.ok(!heard.includes(secret), `the server was told ${name}`)
    }
    assert.ok(!told.some(raw => raw.includes(SENT)))
  })

  test('refuses bad settings with a line for each problem and without repeating a value', async t => {
    const stage = await stageFor(t)
    const bad = {
      SESSION_ID: '../hidden-id',
      PROXY_URL: 'http://me:hidden-password@proxy:1080',
      WEBHOOK_URL: 'http://me:hidden-too@server/api/webhook',
      WEBHOOK_SECRET: 'hidden-secret'
    }
    const worker = stage.startWorker(bad)
    assert.deepEqual(await worker.exit, { code: 78, signal: null })
    const lines = worker.err.trimEnd().split('\n')
    assert.deepEqual(
      lines.map(line => line.split(':')[0]),
      Object.keys(bad)
    )
    assert.ok(!/hidden/.test(worker.err + worker.out))
  })
})

/** That the namespace is one: no names, and no other machine, from within. */
async function assertNoWayOut(stage: Stage, namespace: Namespace): Promise<void> {
  const tries = `
    const { lookup } = require('node:dns/promises')
    const { connect } = require('node:net')
    const reach = host => new Promise(done => connect(443, host, () => done('reached')).on('error', e => done(e.code)))
    lookup('${WHATSAPP}').catch(e => e.code).then(async name => {
      console.log(JSON.stringify([typeof name, await reach('192.0.2.1'), await reach('127.0.0.1')]))
    })`
  const probe = stage.run([...namespace.wrap, process.execPath, '-e', tries])
  await probe.exit
  const [name, elsewhere, loopback] = JSON.parse(probe.out)
  assert.deepEqual([name, elsewhere], ['string', 'ENETUNREACH'], 'the namespace has a way out')
  assert.notEqual(loopback, 'reached')
}

/** Everything that must stay inside, in each form in which it could come out. */
function secretsOf(stage: Stage): [name: string, secret: string][] {
  const store = AuthStore.open(stage.session)
  const creds = store.readCreds() as Record<string, unknown>
  const session = store.get('session', store.list('session'))
  const keys = store.get('pre-key', store.list('pre-key').slice(-5))
  store.close()
  const found: [string, string][] = [
    ['the proxy password', 'a secret'],
    ['the proxy password', 'a%20secret'],
    ['the webhook secret', stage.switchboard.webhookSecret],
    ['a sent text', SENT],
    ['a received text', RECEIVED]
  ]
  // The identity, the noise key and the adv secret are in the QR code by design, but only their public halves.
  for (const key of privateKeys({ creds, session, keys })) {
    const hex = key.toString('hex')
    const inspected = (hex.match(/../g) ?? []).slice(0, 16).join(' ')
    found.push(['a key', hex], ['a key', key.toString('base64')], ['a key', inspected])
  }
  assert.ok(found.length > 20, 'there are hardly any keys')
  return found
}

function privateKeys(value: unknown, name = ''): Buffer[] {
  if (value instanceof Uint8Array) return /priv/i.test(name) ? [Buffer.from(value)] : []
  if (typeof value === 'string') return /priv/i.test(name) ? [Buffer.from(value, 'base64')] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => privateKeys(inner, key))
}
