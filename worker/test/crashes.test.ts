/** SIGKILL at every kind of moment: no message is lost, doubled or unreadable, in either direction, and nobody scans again. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertNothingLost } from './support/balance.js'
import { chance } from './support/disk.js'
import { Queue } from './support/queue.js'
import { CONTACT, PHONE, preload, Stage } from './support/stage.js'

const CONTACTS = [CONTACT, '12025550198', '12025550197']
/** The worker types for a second and more; these tests are about other moments. */
const QUICK = { ...preload('quick_timers'), QUICK: '60', QUICK_BELOW_MS: '5000' }
const LOOK_UP = 'usync:get:usync'

describe('a worker that is killed', () => {
  let stage: Stage
  let queue: Queue
  beforeEach(async () => {
    stage = await Stage.open()
    queue = new Queue(stage)
  })
  afterEach(() => stage.close())

  /** Linked, and told to send one message. */
  async function linkedWorker() {
    const worker = await stage.linkedWorker(PHONE, QUICK)
    return { worker, order: queue.add(CONTACT, 'hello') }
  }

  async function wire(): Promise<{ id: string; text: string | null }[]> {
    return stage.control(`/wire?from=${PHONE}`)
  }

  /** Everything is settled, and the recipient's phone shows the one message once. */
  async function assertShownOnce(stanzas: number): Promise<void> {
    await stage.until(() => queue.isEmpty, 'the message is settled')
    assert.deepEqual(
      (await stage.shown()).map(({ text }) => text),
      ['hello']
    )
    assert.deepEqual(
      (await wire()).map(({ text }) => text),
      Array.from({ length: stanzas }, () => 'hello')
    )
    assert.equal(stage.events('QR_CODE').length, 1)
  }

  test('right after a claim has its message sent by the next process', async () => {
    const { worker } = await linkedWorker()
    await stage.until(() => queue.isHeld, 'the message is claimed')
    await worker.end('SIGKILL')
    assert.deepEqual(await wire(), [])
    await queue.workerDied()
    stage.startWorker(QUICK)
    await assertShownOnce(1)
    assert.equal(queue.attempts, 2)
  })

  test('while it looks the recipient up has sent nothing, and the next process sends once', async () => {
    const mute = await stage.control('/faults', { kind: 'mute', request: LOOK_UP })
    const { worker } = await linkedWorker()
    await stage.until(async () => {
      const { faults } = await stage.control('/state')
      return faults.some((fault: { id: number; hits: number }) => fault.id === mute.id && fault.hits > 0)
    }, 'it asks for the recipient')
    await worker.end('SIGKILL')
    assert.deepEqual(await wire(), [])
    await stage.control(`/faults/${mute.id}`, undefined, 'DELETE')
    await queue.workerDied()
    stage.startWorker(QUICK)
    await assertShownOnce(1)
  })

  test('between its send and the ack of WhatsApp sends again under the same id, which the phone shows once', async () => {
    await stage.control('/faults', { kind: 'no_ack', times: 1 })
    const { worker } = await linkedWorker()
    await stage.until(async () => (await wire()).length === 1, 'the message is on the wire')
    await worker.end('SIGKILL')
    assert.equal(queue.settled, 0)
    await queue.workerDied()
    stage.startWorker(QUICK)
    await assertShownOnce(2)
  })

  /** WhatsApp has the message, the worker wants to tell, and dies. */
  async function killedBeforeItsReport() {
    stage.switchboard.way = told => (told.call === 'ack' ? 'hang' : queue.answer(told))
    const { worker, order } = await linkedWorker()
    await stage.until(() => stage.switchboard.of('ack').length === 1, 'it tells that the message is sent')
    await worker.end('SIGKILL')
    return order
  }

  test('between the ack of WhatsApp and its own tells it in the next process, from its journal', async () => {
    await killedBeforeItsReport()
    stage.switchboard.way = queue.answer
    stage.startWorker(QUICK)
    await assertShownOnce(1)
    assert.equal(queue.attempts, 1)
  })

  test('between the ack of WhatsApp and its own does not send again, even if the message is handed over', async () => {
    const order = await killedBeforeItsReport()
    await queue.workerDied()
    stage.switchboard.way = told => (told.call === 'ack' && queue.attempts === 1 ? 'cut' : queue.answer(told))
    stage.startWorker(QUICK)
    const attempts = (): unknown[] => stage.switchboard.of('ack').map(({ body }) => body['attempt'])
    await stage.until(() => attempts().includes(2), 'the second attempt is reported')
    await assertShownOnce(1)
    assert.equal(order.attempt, 2)
  })

  test('at 25 moments of chance loses nothing, doubles nothing, and uses no key twice', {
    timeout: 180_000
  }, async t => {
    const random = chance(20_261_115)
    const sent: string[] = []
    const received: string[] = []
    const order = (): void => {
      sent.push(`from me ${sent.length}`)
      queue.add(CONTACTS[random(3)] ?? CONTACT, sent.at(-1) ?? '')
    }
    const write = async (): Promise<void> => {
      received.push(`to you ${received.length}`)
      await stage.control('/send', { from: CONTACTS[random(3)], to: PHONE, text: received.at(-1) })
    }
    /** What is seen of a worker from outside; the kill comes a moment of chance after one of these. */
    const logins = (): number => stage.events('CONNECTED').length
    const moments = [
      logins,
      () => queue.attempts,
      async () => (await wire()).length,
      () => queue.settled,
      () => stage.events('MESSAGE_RECEIVED').length
    ]
    let worker = await stage.linkedWorker(PHONE, QUICK)
    await stage.control('/behave', { deliveredAfterMs: 0, readAfterMs: 0 })
    for (let life = 0; life < 25; life += 1) {
      const loggedIn = logins()
      const moment = moments[random(moments.length)] ?? logins
      const before = await moment()
      order()
      order()
      await write()
      if (life > 0) {
        worker = stage.startWorker(QUICK)
        await stage.until(() => logins() > loggedIn, `life ${life} is logged in`)
      }
      if (random(2)) await write()
      if (moment !== logins) await stage.until(async () => (await moment()) > before, `life ${life} does something`)
      await sleep(random(60))
      await worker.end('SIGKILL')
      await queue.workerDied()
    }
    stage.startWorker(QUICK)
    await assertNothingLost(stage, queue, { sent, received })
    assert.equal(stage.events('QR_CODE').length, 1)
    t.diagnostic(`${sent.length} sent in ${queue.attempts} attempts and ${(await wire()).length} stanzas`)
    t.diagnostic(`${received.length} received`)
  })
})
