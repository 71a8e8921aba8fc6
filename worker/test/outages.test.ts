/** The server or WhatsApp is away for a while: nothing is lost, nothing is told twice, and nobody has to scan again. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { assertNothingLost, textsTold } from './support/balance.js'
import { Queue } from './support/queue.js'
import { CONTACT, PHONE, preload, Stage } from './support/stage.js'

const QUICK = { ...preload('quick_timers'), QUICK: '60', QUICK_BELOW_MS: '5000' }

describe('a worker', () => {
  let stage: Stage
  let queue: Queue
  beforeEach(async () => {
    stage = await Stage.open()
    queue = new Queue(stage)
  })
  afterEach(() => stage.close())

  async function write(...texts: string[]): Promise<void> {
    for (const text of texts) await stage.control('/send', { from: CONTACT, to: PHONE, text })
  }

  /** Nothing waits at WhatsApp any more: the worker has taken it all. */
  async function allTaken(): Promise<void> {
    await stage.until(async () => {
      const { accounts } = await stage.control('/state')
      return accounts.some((account: { phone: string; waiting: number }) => account.phone === PHONE && !account.waiting)
    }, 'the worker has taken all that waited')
  }

  test('keeps what it has to tell while the server is away, and tells it in order, once, also after a restart', async () => {
    const worker = await stage.linkedWorker(PHONE, QUICK)
    await write('one')
    await stage.event('MESSAGE_RECEIVED')
    await stage.switchboard.away()
    await write('two', 'three')
    await allTaken()
    await worker.end('SIGKILL')
    stage.startWorker(QUICK)
    await write('four', 'five')
    await allTaken()
    assert.deepEqual(textsTold(stage), ['one'])
    const known = stage.events().length
    await stage.switchboard.back()
    await stage.until(() => textsTold(stage).length === 5, 'all is told')
    assert.deepEqual(textsTold(stage), ['one', 'two', 'three', 'four', 'five'])
    const numbers = stage
      .events()
      .slice(known)
      .map(({ sequence }) => Number(sequence))
    assert.deepEqual(
      numbers,
      [...new Set(numbers)].sort((one, other) => one - other),
      'something was told twice'
    )
    assert.equal(stage.events('QR_CODE').length, 1)
  })

  test('connects again and sends the rest when its connection is cut in the middle of sending', async () => {
    await stage.linkedWorker(PHONE, QUICK)
    const sent = ['one', 'two', 'three', 'four']
    for (const text of sent) queue.add(CONTACT, text)
    await stage.until(() => queue.settled === 1, 'one is sent')
    await stage.control('/faults', { kind: 'drop_message', times: 1 })
    await stage.until(() => queue.settled === 2, 'the next is sent after its connection was cut')
    await stage.control('/drop', { phone: PHONE })
    await stage.until(() => queue.isEmpty, 'all are sent')
    assert.deepEqual(
      (await stage.shown()).map(({ text }) => text),
      sent
    )
    assert.equal(stage.events('QR_CODE').length, 1)
  })

  test('survives a restart of WhatsApp in the middle of sending without another QR code', async () => {
    await stage.linkedWorker(PHONE, QUICK)
    const sent = ['one', 'two', 'three', 'four']
    for (const text of sent) queue.add(CONTACT, text)
    await stage.until(() => queue.settled === 1, 'one is sent')
    await stage.endSimulator('SIGKILL')
    await stage.until(() => stage.events('DISCONNECTED').length + stage.events('PROXY_ERROR').length > 0, 'it notices')
    await stage.startSimulator()
    await write('while you were busy')
    await assertNothingLost(stage, queue, { sent, received: ['while you were busy'] })
    assert.equal(stage.events('QR_CODE').length, 1)
  })
})
