/** Linking by a code instead of a QR, passkeys, and unlinking from either side. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PHONE, Stage } from './support/stage.js'
import {
  account,
  dialled,
  linkedImpatient,
  news,
  onStage,
  restart,
  seen,
  staysAway,
  story,
  storyIs
} from './support/watch.js'

const ASKING = 'md:set:link_code_companion_reg'
const UNLINKING = 'md:set:remove-companion-device'
const LINKED = ['QR_CODE', 'CONNECTED']
const LINKED_DIALS = 2

const play = (body: (stage: Stage) => Promise<void>) => onStage(body, () => Stage.open())

const orderCode = (stage: Stage, id = 1) =>
  stage.switchboard.offer({ message: null, order: { id, type: 'pair', phone: PHONE } })

/** Resolves once the worker says that it took the order on. */
async function orderLogOut(stage: Stage, id = 1): Promise<void> {
  stage.switchboard.offer({ message: null, order: { id, type: 'logout' } })
  const isTakenOn = () => stage.switchboard.of('claim').some(({ body }) => body['order'] === id)
  await stage.until(isTakenOn, 'the order is taken on')
}

/** What the phone says to somebody who types this code. */
async function type(stage: Stage, code: unknown): Promise<number> {
  const url = `http://127.0.0.1:${stage.running.control}/enter-code`
  return (await fetch(url, { method: 'POST', body: JSON.stringify({ code, phone: PHONE }) })).status
}

describe('linking and unlinking', { concurrency: 4 }, () => {
  test(
    'a pairing code is told once WhatsApp has accepted it, not before, and links the worker when it is typed',
    play(async stage => {
      await stage.control('/faults', { kind: 'mute', request: ASKING, times: 1 })
      await stage.control('/faults', { kind: 'slow', request: ASKING, ms: 1_000, times: 1 })
      orderCode(stage, 1)
      stage.startWorker()
      await stage.until(async () => (await seen(stage, ASKING)) === 1, 'the first one is asked for')
      orderCode(stage, 2)
      await stage.until(async () => (await seen(stage, ASKING)) === 2, 'the second one is asked for')
      assert.deepEqual(story(stage), ['QR_CODE'])
      const { code, phoneNumber, expiresAt } = await stage.event('PAIRING_CODE')
      assert.equal(phoneNumber, PHONE)
      // It lives no longer than the connection, which ends with the last of six QR codes.
      const { expiresAt: firstQrUntil } = await stage.event('QR_CODE')
      assert.equal(Number(expiresAt), Number(firstQrUntil) + 5 * 20_000)
      assert.equal(await type(stage, code), 200)
      await storyIs(stage, ['QR_CODE', 'PAIRING_CODE', 'CONNECTED'])
      assert.equal((await account(stage))?.linked, true)
    })
  )

  test(
    'a pairing code that was mistyped links nothing, and the right one still does',
    play(async stage => {
      orderCode(stage)
      stage.startWorker()
      const { code } = await stage.event('PAIRING_CODE')
      const wrong = String(code).startsWith('2') ? `3${String(code).slice(1)}` : `2${String(code).slice(1)}`
      assert.equal(await type(stage, wrong), 400)
      assert.notEqual((await account(stage))?.linked, true)
      assert.equal(await type(stage, code), 200)
      await stage.event('CONNECTED')
      assert.equal(news(stage, 'DISCONNECTED').length, 0)
    })
  )

  test(
    'a pairing code that nobody typed leaves nothing behind: the next process shows a QR code, and that one links',
    play(async stage => {
      orderCode(stage)
      const worker = stage.startWorker()
      await stage.event('PAIRING_CODE')
      await restart(stage, worker)
      await stage.until(() => news(stage, 'QR_CODE').length === 2, 'another QR code')
      assert.deepEqual(story(stage), ['QR_CODE', 'PAIRING_CODE', 'QR_CODE'])
      const data = news(stage, 'QR_CODE').at(-1)?.['data'] as { qr: string } | undefined
      await stage.control('/scan', { qr: data?.qr, phone: PHONE })
      await stage.event('CONNECTED')
      assert.equal((await account(stage))?.logins, 1)
    })
  )
  test(
    'an account with a passkey is told as such, once, and no further QR codes are shown',
    play(async stage => {
      await stage.control('/faults', { kind: 'passkey' })
      const worker = stage.startWorker()
      const { qr } = await stage.event('QR_CODE')
      await stage.control('/scan', { qr, phone: PHONE })
      await storyIs(stage, ['QR_CODE', 'STATUS_CHANGE passkey_required'])
      await staysAway(stage, worker, 1)
      assert.deepEqual(story(stage), ['QR_CODE', 'STATUS_CHANGE passkey_required'])
    })
  )
  test(
    'logging out by order unlinks the device, is told, and the worker stays away',
    play(async stage => {
      const worker = await stage.linkedWorker()
      await orderLogOut(stage)
      await storyIs(stage, [...LINKED, 'DISCONNECTED logged_out'])
      assert.equal((await account(stage))?.linked, false)
      await staysAway(stage, worker, LINKED_DIALS)
      assert.deepEqual(story(stage), [...LINKED, 'DISCONNECTED logged_out'])
    })
  )

  test(
    'logging out by order while there is no connection is done as soon as there is one',
    play(async stage => {
      const worker = await stage.linkedWorker()
      await stage.control('/proxies/1/fault', { mode: 'refuse' })
      await stage.control('/drop', { phone: PHONE })
      await stage.event('PROXY_ERROR')
      await orderLogOut(stage)
      assert.equal((await account(stage))?.linked, true)
      await stage.control('/proxies/1/fault', { mode: 'none' })
      const before = [...LINKED, 'DISCONNECTED connection_closed_428', 'PROXY_ERROR refused']
      await storyIs(stage, [...before, 'CONNECTED', 'DISCONNECTED logged_out'])
      assert.equal((await account(stage))?.linked, false)
      await staysAway(stage, worker, LINKED_DIALS + 1)
    })
  )

  test(
    'logging out by order is not told unless WhatsApp says so; the next connection begins with it',
    play(async stage => {
      const worker = await linkedImpatient(stage)
      await stage.control('/faults', { kind: 'mute', request: UNLINKING, times: 2 })
      await orderLogOut(stage)
      await stage.until(() => worker.err.includes('order_failed'), 'it gives up waiting for an answer')
      await stage.control('/drop', { phone: PHONE })
      await stage.until(async () => (await seen(stage, UNLINKING)) === 2, 'asked for again')
      await stage.control('/drop', { phone: PHONE })
      const dropped = ['DISCONNECTED connection_closed_428', 'CONNECTED']
      await storyIs(stage, [...LINKED, ...dropped, ...dropped, 'DISCONNECTED logged_out'])
      assert.equal((await account(stage))?.linked, false)
      assert.equal(await seen(stage, UNLINKING), 3)
    })
  )

  test(
    'logging out on the phone is told, and the worker stays away',
    play(async stage => {
      const worker = await stage.linkedWorker()
      const dials = await dialled(stage)
      await stage.control('/log-out', { phone: PHONE })
      await storyIs(stage, [...LINKED, 'DISCONNECTED logged_out'])
      await staysAway(stage, worker, dials)
      assert.deepEqual(story(stage), [...LINKED, 'DISCONNECTED logged_out'])
    })
  )
})
