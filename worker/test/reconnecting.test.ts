/** One connection after the other: how soon, and what the one that is over may still do. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { AuthStore } from '../src/auth_store.js'
import type { Connection, Hooks } from '../src/baileys.js'
import { Journal } from '../src/journal.js'
import { WhatsAppLink } from '../src/link.js'
import { Log } from '../src/log.js'
import { temporaryFolder } from './support/disk.js'
import { CONTACT, PHONE, preload, Stage } from './support/stage.js'
import { TestClock, until } from './support/time.js'
import { dialGaps, dialled, onStage, seen } from './support/watch.js'

const RESTART = { message: 'Stream Errored (restart required)', code: 515, data: undefined }
const ME = { phone: PHONE, address: `${PHONE}:1@s.whatsapp.net` }
const GOOD_MS = 60_000
const UPLOAD = 'encrypt:set:registration'
/** The library begins its upload anew this long after the connection is gone, and then makes some 800 keys. */
const UPLOADS_AGAIN_MS = 1_000
const MAKES_KEYS_MS = 1_500

/** A link on a clock of our own, with connections that do what the test says. */
function linked(context: TestContext) {
  const journal = Journal.open(temporaryFolder(context))
  const clock = new TestClock()
  const dials: Hooks[] = []
  const link = new WhatsAppLink({
    dial: hooks => {
      dials.push(hooks)
      return { me: [], deliverInbox: async () => undefined, hangUp: () => undefined } as unknown as Connection
    },
    isLinked: () => true,
    forgetHalfLink: () => false,
    journal,
    deviceName: 'test',
    log: new Log(() => undefined),
    broken: error => assert.fail(String(error)),
    clock,
    random: () => 0
  })
  const running = link.start()
  context.after(async () => {
    await link.close()
    await running
    journal.close()
  })
  /** The next connection, which is dialled as soon as the pause is over. */
  const dialled = async (nth: number): Promise<Hooks> => {
    await clock.skipUntil(() => dials.length >= nth || clock.asked.at(-1) === 0, `dial ${nth}`)
    await until(() => dials.length >= nth, `dial ${nth}`)
    return dials[nth - 1] as Hooks
  }
  return { clock, dialled }
}

describe('a restart that WhatsApp asks for', () => {
  test('right after every login is followed by growing pauses', async context => {
    const { clock, dialled } = linked(context)
    for (let login = 1; login <= 4; login += 1) {
      const connection = await dialled(login)
      connection.open(ME)
      connection.ended(RESTART)
    }
    await dialled(5)
    assert.deepEqual(clock.asked, [500, 1_000, 2_000, 4_000])
  })

  test('after a scan, or of a connection that was a good one, is followed at once', async context => {
    const { clock, dialled } = linked(context)
    const pairing = await dialled(1)
    pairing.qr('a code')
    pairing.ended(RESTART)
    const connection = await dialled(2)
    connection.open(ME)
    clock.advance(GOOD_MS)
    connection.ended(RESTART)
    await dialled(3)
    assert.deepEqual(clock.asked, [0, 0])
  })
})

/** What the worker has on its disk just now. It goes on writing, so this is a copy. */
function preKeys(stage: Stage): Record<string, unknown> {
  const copy = mkdtempSync(join(stage.folder, 'copy-'))
  cpSync(join(stage.session, 'auth.dat'), join(copy, 'auth.dat'))
  const store = AuthStore.open(copy)
  const keys = store.get('pre-key', store.list('pre-key'))
  store.close()
  return keys
}

const play = (body: (stage: Stage) => Promise<void>, options: readonly string[] = []) =>
  onStage(body, () => Stage.open(options))

const hasIPv6 = Object.values(networkInterfaces()).some(all => all?.some(({ address }) => address === '::1'))

describe('a worker', { concurrency: 3 }, () => {
  test(
    'whose connection ends while it uploads keys keeps those that the next connection has uploaded',
    play(async stage => {
      // It connects anew at once, well before the old connection is at its upload again.
      stage.startWorker({ ...preload('quick_timers'), QUICK: '50', QUICK_BELOW_MS: String(UPLOADS_AGAIN_MS - 1) })
      const { qr } = await stage.event('QR_CODE')
      await stage.control('/faults', { kind: 'mute', request: UPLOAD, times: 1 })
      await stage.control('/scan', { qr, phone: PHONE })
      await stage.until(async () => (await seen(stage, UPLOAD)) === 1, 'the first upload')
      await stage.control('/drop', { phone: PHONE })
      const dropped = Date.now()
      await stage.event('CONNECTED')
      assert.equal(await seen(stage, UPLOAD), 2)
      const uploaded = preKeys(stage)
      await sleep(dropped + UPLOADS_AGAIN_MS + MAKES_KEYS_MS - Date.now())
      // Some may be used up by now; none may be another one.
      const others = Object.entries(preKeys(stage)).filter(([id, key]) => !isDeepStrictEqual(key, uploaded[id]))
      assert.deepEqual(
        others.map(([id]) => id),
        []
      )
      await stage.control('/send', { from: CONTACT, to: PHONE, text: 'can you read this?' })
      assert.equal((await stage.event('MESSAGE_RECEIVED'))['text'], 'can you read this?')
      assert.equal(await seen(stage, 'receipt:retry:retry'), 0)
    })
  )

  test(
    'that is told to restart after every login waits longer each time',
    play(async stage => {
      await stage.linkedWorker()
      for (let login = 1; login <= 2; login += 1) {
        await stage.event('CONNECTED', login)
        await stage.control('/stream-error', { phone: PHONE, code: 515 })
      }
      await stage.event('CONNECTED', 3)
      const pauses = (await dialGaps(stage)).slice(-2)
      assert.ok(
        pauses.every((pause, index) => pause >= 500 * 2 ** index),
        `no growing pauses: ${pauses}`
      )
    })
  )

  test(
    'reaches WhatsApp through a proxy with an IPv6 address',
    { skip: hasIPv6 ? false : 'this machine has no IPv6' },
    play(
      async stage => {
        const [proxy] = stage.running.proxies
        await stage.linkedWorker(PHONE, { PROXY_URL: `socks5h://me:a%20secret@[::1]:${proxy?.port}` })
        assert.deepEqual(stage.events('PROXY_ERROR'), [])
        assert.equal(await dialled(stage), 2)
      },
      ['--listen', '::1']
    )
  )
})
