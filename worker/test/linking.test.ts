/** The worker that ships against the simulator: linking, sending, receiving, and ending. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { CONTACT, PHONE, Stage } from './support/stage.js'

describe('a worker', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await Stage.open()
  })
  afterEach(() => stage.close())

  test('shows a QR code, is linked by its scan, sends, and tells delivered and read', async () => {
    await stage.control('/behave', { deliveredAfterMs: 0, readAfterMs: 20 })
    const worker = stage.startWorker()
    const { qr, expiresAt } = await stage.event('QR_CODE')
    assert.ok(Number(expiresAt) > Date.now())
    await stage.control('/scan', { qr, phone: PHONE })
    assert.deepEqual(await stage.event('CONNECTED'), {
      phoneNumber: PHONE,
      jid: `${PHONE}:1@s.whatsapp.net`,
      fingerprint: 'Switchboard'
    })
    const { whatsappId } = stage.offer('hello there')
    assert.equal((await stage.settled()).call, 'ack')
    assert.equal((await stage.event('MESSAGE_READ'))['whatsappId'], whatsappId)
    const [shown, ...others] = await stage.shown()
    assert.deepEqual([shown?.id, shown?.text, shown?.stanzas, others.length], [whatsappId, 'hello there', 1, 0])
    assert.deepEqual(await worker.end('SIGTERM'), { code: 0, signal: null })
    assert.deepEqual(await stage.event('DISCONNECTED'), { reason: 'stopped' })
  })

  test('tells what people write by their phone number, also what came while it was away, once', async () => {
    const worker = await stage.linkedWorker()
    await stage.control('/send', { from: CONTACT, to: PHONE, text: 'hi you' })
    const { from, text, backfilled } = await stage.event('MESSAGE_RECEIVED')
    assert.deepEqual([from, text, backfilled], [CONTACT, 'hi you', undefined])
    await worker.end('SIGKILL')
    await stage.control('/send', { from: CONTACT, to: PHONE, text: 'while you were away' })
    stage.startWorker()
    const late = await stage.event('MESSAGE_RECEIVED', 2)
    assert.deepEqual([late['from'], late['text'], late['backfilled']], [CONTACT, 'while you were away', true])
    assert.equal(stage.events('QR_CODE').length, 1)
  })
})
