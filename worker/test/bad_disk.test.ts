/** A worker whose writes are cut short: by a kill in the middle of any of them, or by a disk that is full. */
import assert from 'node:assert/strict'
import { cpSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { AuthStore } from '../src/auth_store.js'
import { isLinked } from '../src/baileys.js'
import { assertNothingLost } from './support/balance.js'
import { Queue } from './support/queue.js'
import { CONTACT, PHONE, type Program, preload, Stage } from './support/stage.js'

const QUICK = { ...preload('quick_timers'), QUICK: '60', QUICK_BELOW_MS: '5000' }
const KILLED = { code: null, signal: 'SIGKILL' }
const BAD_STORAGE = { code: 74, signal: null }
const STATES = ['QR_CODE', 'CONNECTED', 'DISCONNECTED']
/** It takes some 36 writes, syncs and renames to link a device, some 18 to log in, and 15 or 7 for a message. */
const WHILE_LINKING = [1, 3, 6, 10, 14, 17, 18, 19, 21, 25, 30, 35]
const WHILE_LOGGING_IN = [2, 6, 10, 14]
const WHILE_SENDING = [1, 3, 5, 7, 8, 9, 10, 11, 13, 15]
const WHILE_RECEIVING = [1, 2, 3, 4, 5, 7]
const FROM_ME = 'from me'
const TO_YOU = 'to you'

describe('a worker', () => {
  let stage: Stage
  let queue: Queue
  beforeEach(async () => {
    stage = await Stage.open()
    queue = new Queue(stage)
  })
  afterEach(() => stage.close())

  const write = (text: string, to = PHONE) => stage.control('/send', { from: CONTACT, to, text })

  test('killed in any write while it is being linked logs in, or shows a QR code if it was not linked yet', async t => {
    for (const n of WHILE_LINKING) {
      const sessions = join(stage.folder, `sessions-${n}`)
      const phone = `1202555${3000 + n}`
      const dying = stage.startWorker({ ...killedAt(n), SESSIONS_DIR: sessions })
      assert.deepEqual(await untilItEnds(stage, dying, phone), KILLED, `number ${n}`)
      const expected = await expectedAfter(sessions, phone)
      const since = Date.now()
      const next = stage.startWorker({ ...QUICK, SESSIONS_DIR: sessions })
      // What the process before left in its journal is told, too, and is older.
      const told = () =>
        stage.events().filter(({ type, timestamp }) => Number(timestamp) >= since && STATES.includes(String(type)))
      await stage.until(() => told().length > 0, `number ${n} goes on`)
      const [first] = told()
      assert.equal(first?.['type'], expected, `number ${n}`)
      if (expected === 'QR_CODE') {
        await stage.control('/scan', { ...codeIn(first?.['data']), phone })
        await stage.until(() => told().some(({ type }) => type === 'CONNECTED'), `number ${n} is connected`)
      }
      t.diagnostic(`${n}: ${expected}`)
      await next.end('SIGKILL')
      assert.deepEqual(damaged(sessions), [])
    }
  })

  /** The first word of the process that follows one which was killed. */
  async function expectedAfter(sessions: string, phone: string): Promise<string> {
    const { accounts } = await stage.control('/state')
    const known = accounts.some(
      (account: { phone: string; linked: boolean }) => account.phone === phone && account.linked
    )
    // Written down, and killed before WhatsApp got the confirmation it waits for: WhatsApp refuses such a device.
    return wasLinked(sessions, stage) && known ? 'CONNECTED' : 'QR_CODE'
  }

  test('killed in any write while it sends and receives loses and doubles nothing', { timeout: 120_000 }, async () => {
    const first = await stage.linkedWorker(PHONE, QUICK)
    const sent: string[] = []
    const received: string[] = []
    const order = (): void => {
      sent.push(`${FROM_ME} ${sent.length}`)
      queue.add(CONTACT, sent.at(-1) ?? '')
    }
    const write = async (): Promise<void> => {
      received.push(`${TO_YOU} ${received.length}`)
      await stage.control('/send', { from: CONTACT, to: PHONE, text: received.at(-1) })
    }
    const kills = [
      ...WHILE_LOGGING_IN.map(n => ({ n, from: '', work: write })),
      ...WHILE_SENDING.map(n => ({ n, from: FROM_ME, work: order })),
      ...WHILE_RECEIVING.map(n => ({ n, from: TO_YOU, work: write }))
    ]
    await write()
    await stage.event('MESSAGE_RECEIVED')
    order()
    await stage.until(() => queue.isEmpty, 'the first message is sent')
    // Both have a session with the other now: only one that goes on can use a key twice.
    await first.end('SIGKILL')
    await queue.workerDied()
    for (const { n, from, work } of kills) {
      const dying = stage.startWorker(killedAt(n, from))
      await work()
      await stage.until(() => dying.process.signalCode !== null || dying.process.exitCode !== null, `${from} ${n} dies`)
      assert.deepEqual(await dying.exit, KILLED, dying.err)
      await queue.workerDied()
    }
    stage.startWorker(QUICK)
    await assertNothingLost(stage, queue, { sent, received })
    assert.equal(stage.events('QR_CODE').length, 1)
    assert.deepEqual(damaged(join(stage.folder, 'sessions')), [])
  })

  test('on a full disk ends with a word what to do, and goes on where it was once there is space', async () => {
    await (await stage.linkedWorker(PHONE, QUICK)).end('SIGTERM')
    const known = stage.events('CONNECTED').length
    const { size } = statSync(join(stage.session, 'auth.dat'))
    const sent: string[] = []
    const received: string[] = []
    for (const spare of [0, 1, 2, 4, 8]) {
      // No file may grow beyond this many blocks of 512 bytes.
      const limit = ['/bin/sh', '-c', 'ulimit -f "$1"; shift; exec "$@"', 'sh', String(Math.ceil(size / 512) + spare)]
      const full = stage.startWorker(QUICK, limit)
      sent.push(`from me ${sent.length}`)
      queue.add(CONTACT, sent.at(-1) ?? '')
      received.push(`to you ${received.length}`)
      await write(received.at(-1) ?? '')
      assert.deepEqual(await full.exit, BAD_STORAGE, full.err)
      assert.match(full.err, /^no space left to write in .*: free some space$/m)
      await queue.workerDied()
    }
    stage.startWorker(QUICK)
    await stage.event('CONNECTED', known + 1)
    await assertNothingLost(stage, queue, { sent, received })
    assert.equal(stage.events('QR_CODE').length, 1)
  })
})

/** Dies in the middle of the nth thing that it does to its files, counted from the first that has to do with `from`. */
function killedAt(n: number, from = ''): Record<string, string> {
  return { ...QUICK, ...preload('kill_at', 'quick_timers'), KILL_AT: String(n), KILL_FROM: from }
}

/** The phone scans whatever code is shown, and people write, until the worker is no more. */
async function untilItEnds(stage: Stage, worker: Program, phone: string) {
  let alive = true
  const exit = worker.exit.finally(() => {
    alive = false
  })
  let known = stage.events().length
  while (alive) {
    await stage.until(() => !alive || stage.events().length > known, 'something happens')
    for (const { type, data } of stage.events().slice(known)) {
      known += 1
      // It may be gone by then, which is what this is about.
      if (type === 'QR_CODE') await stage.control('/scan', { ...codeIn(data), phone }).catch(() => undefined)
      if (type === 'CONNECTED') await stage.control('/send', { from: CONTACT, to: phone, text: 'more to write' })
    }
  }
  return exit
}

function codeIn(data: unknown): { qr: unknown } {
  return { qr: (data as Record<string, unknown>)['qr'] }
}

/** Read from a copy: opening the files mends them. */
function wasLinked(sessions: string, stage: Stage): boolean {
  const copy = `${sessions}-copy`
  cpSync(join(sessions, stage.switchboard.sessionId), copy, { recursive: true, force: true })
  const store = AuthStore.open(copy)
  try {
    return isLinked(store)
  } finally {
    store.close()
  }
}

const damaged = (folder: string): string[] =>
  readdirSync(folder, { recursive: true }).filter(name => String(name).includes('corrupt')) as string[]
