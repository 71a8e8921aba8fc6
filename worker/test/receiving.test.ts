/** What people write reaches the server, whatever is odd about it or in its way. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { AuthStore } from '../src/auth_store.js'
import { Journal, JournalFull } from '../src/journal.js'
import type { Report } from '../src/types.js'
import { CONTACT, PHONE, preload, Stage } from './support/stage.js'
import { account, dialled, onStage, within } from './support/watch.js'

const QUICK = { ...preload('quick_timers'), QUICK: '60', QUICK_BELOW_MS: '5000' }
/** What the server takes in one request. */
const MOST_BYTES = 256 * 1024
const MAPPING = 'lid-mapping'

const play = (body: (stage: Stage) => Promise<void>) => onStage(body, () => Stage.open())

const write = (stage: Stage, text: string, more: Record<string, string> = {}) =>
  stage.control('/send', { from: CONTACT, to: PHONE, text, ...more })

const received = (stage: Stage): Record<string, unknown>[] =>
  stage.events('MESSAGE_RECEIVED').map(({ data }) => data as Record<string, unknown>)

/** Reports of an earlier life, until not a byte more fits in. Answers how many. */
function fill(folder: string): number {
  const journal = Journal.open(folder)
  const data = { from: CONTACT, timestamp: Date.now() }
  for (const length of [190_000, 20_000, 2_000, 200, 0]) {
    const text = 'x'.repeat(length)
    try {
      for (;;) {
        const whatsappId = `A${journal.length}`
        const report: Report = {
          kind: 'event',
          type: 'MESSAGE_RECEIVED',
          timestamp: data.timestamp,
          data: { ...data, whatsappId, text }
        }
        journal.add(report)
      }
    } catch (error) {
      assert.ok(error instanceof JournalFull)
    }
  }
  const { length } = journal
  journal.close()
  return length
}

describe('a worker', { concurrency: 3 }, () => {
  test(
    'tells what is too long, half a character, or under an odd id in a form that the server takes',
    play(async stage => {
      await stage.linkedWorker()
      // Each takes six bytes in JSON: as many as the simulator takes, and with what the worker adds too many for the server.
      const long = '\u0001'.repeat(43_670)
      const rows: readonly (readonly [id: string, text: string])[] = [
        ['LONG', long],
        ['HALF', 'a\ud800b'],
        ['NUL', 'a\u0000b'],
        ['an odd/id', 'odd'],
        ['LAST', 'fine']
      ]
      for (const [id, text] of rows) await write(stage, text, { id })
      await stage.event('MESSAGE_RECEIVED', rows.length)
      const texts = new Map(received(stage).map(({ whatsappId, text }) => [whatsappId, String(text)]))
      const odd = createHash('sha256').update('an odd/id').digest('hex')
      assert.deepEqual([...texts.keys()].sort(), ['HALF', 'LAST', 'LONG', 'NUL', odd].sort())
      assert.ok(long.startsWith(texts.get('LONG') ?? '?'))
      assert.match(texts.get('HALF') ?? '', /^a\ufffd+b$/)
      assert.equal(texts.get('NUL'), 'a\u0000b')
      for (const { raw } of stage.switchboard.of('event')) assert.ok(Buffer.byteLength(raw) <= MOST_BYTES)
    })
  )

  test(
    'whose journal is full connects only when the server has heard enough of it',
    play(async stage => {
      await (await stage.linkedWorker()).end('SIGTERM')
      const filled = fill(stage.session)
      const dials = await dialled(stage)
      const told = (): number => stage.switchboard.of('event').length
      const before = told()
      stage.switchboard.way = ({ call }) =>
        call === 'event' ? { status: 503, body: { error: 'UNAVAILABLE', message: 'later' } } : undefined
      const worker = stage.startWorker()
      // Pauses of a second and a half lie between these: a connection would be there long before.
      await stage.until(() => told() >= before + 5 || worker.process.exitCode !== null, 'it tries to tell')
      assert.equal(worker.process.exitCode, null, worker.err)
      assert.equal(await dialled(stage), dials)
      const heard = told()
      stage.switchboard.way = () => undefined
      await within(
        20_000,
        async () => (await account(stage))?.logins === 2,
        () => `it connects ${worker.err}`
      )
      assert.ok(told() - heard > filled / 10, `connected after ${told() - heard} of ${filled}`)
      assert.equal(worker.process.exitCode, null, worker.err)
    })
  )

  test(
    'tells a letter from an unknown LID as soon as it learns the number, without a new connection',
    play(async stage => {
      const first = await stage.linkedWorker(PHONE, QUICK)
      await write(stage, 'hello')
      await stage.event('MESSAGE_RECEIVED')
      await first.end('SIGTERM')
      // The number is forgotten, and another letter lies there from when it was not known yet.
      const store = AuthStore.open(stage.session)
      const lid = String(store.get(MAPPING, [CONTACT])[CONTACT])
      assert.ok(store.list(MAPPING).includes(`${lid}_reverse`))
      const letter = { id: 'EARLY', from: `${lid}@lid`, phone: null, timestamp: Date.now(), backfilled: false }
      await store.set({
        [MAPPING]: { [CONTACT]: null, [`${lid}_reverse`]: null },
        inbox: { [`${lid}/EARLY`]: { ...letter, text: 'who am I?' } }
      })
      store.close()
      stage.startWorker(QUICK)
      await stage.event('CONNECTED', 2)
      stage.offer('hello yourself')
      assert.equal((await stage.settled()).call, 'ack')
      const { from, whatsappId, text } = await stage.event('MESSAGE_RECEIVED', 2)
      assert.deepEqual({ from, whatsappId, text }, { from: CONTACT, whatsappId: 'EARLY', text: 'who am I?' })
      assert.equal(stage.events('CONNECTED').length, 2)
    })
  )

  test(
    'tells what somebody writes in the order in which it was written, from the first word on',
    play(async stage => {
      await stage.linkedWorker()
      const words = Array.from({ length: 12 }, (_, number) => `word ${number}`)
      for (const text of words) await write(stage, text)
      await stage.event('MESSAGE_RECEIVED', words.length)
      assert.deepEqual(
        received(stage).map(({ text }) => text),
        words
      )
    })
  )

  test(
    'tells what it could not read itself when the owner’s phone hands it over, once, and nothing of the owner’s own',
    play(async stage => {
      await stage.linkedWorker(PHONE, preload('phone_resends'))
      const timestamp = Math.floor(Date.now() / 1_000) - 3_600
      const handOver = (id: string, words: string, key: Record<string, unknown> = {}) => {
        const whole = { remoteJid: `${CONTACT}@s.whatsapp.net`, fromMe: false, id, ...key }
        const resend = { key: whole, message: { conversation: words }, messageTimestamp: timestamp }
        return write(stage, JSON.stringify({ resend }), { from: PHONE })
      }
      await handOver('MINE', 'from me', { fromMe: true })
      await handOver('GROUP', 'to all', { remoteJid: '120363000000000000@g.us' })
      await handOver('LOST', 'found again')
      await handOver('LOST', 'found again')
      await handOver('LAST', 'the last one')
      await stage.until(() => received(stage).some(({ text }) => text === 'the last one'), 'the last one')
      const found = { from: CONTACT, timestamp: timestamp * 1_000, backfilled: true }
      assert.deepEqual(received(stage), [
        { ...found, whatsappId: 'LOST', text: 'found again' },
        { ...found, whatsappId: 'LAST', text: 'the last one' }
      ])
    })
  )
})
