/**
 * Every way in which a connection ends, made to happen for real: what is told of it, and whether the worker comes back by
 * itself. The same table by the errors' shapes alone is in endings.test.ts.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PHONE, type Program, Stage } from './support/stage.js'
import {
  account,
  dialGaps,
  dialled,
  linkedImpatient,
  news,
  onStage,
  restart,
  START_MS,
  staysAway,
  story,
  storyIs,
  timesAsFast,
  within
} from './support/watch.js'

/** Dialled once to be paired and once to log in. */
const LINKED_DIALS = 2
const LINKED = ['QR_CODE', 'CONNECTED']
const DROPPED = 'DISCONNECTED connection_closed_428'
const HANGING_MS = 45_000

const play = (body: (stage: Stage) => Promise<void>) => onStage(body, () => Stage.open())

/** Connected again, with the old credentials. */
async function cameBack(stage: Stage, logins: number): Promise<void> {
  await within(
    START_MS,
    () => news(stage, 'CONNECTED').length >= logins,
    () => `${logins} logins; ${story(stage)}`
  )
  assert.equal((await account(stage))?.logins, logins)
  assert.equal(news(stage, 'QR_CODE').length, 1)
}

const ofProxy = (stage: Stage, fault: Record<string, unknown>) => stage.control('/proxies/1/fault', fault)
const ofServer = (stage: Stage, fault: Record<string, unknown>) => stage.control('/faults', fault)

describe('when a connection ends', { concurrency: 6 }, () => {
  test(
    'a link that froze is given up, and made anew',
    play(async stage => {
      await linkedImpatient(stage, 10)
      await ofProxy(stage, { mode: 'freeze' })
      await within(HANGING_MS, () => stage.events('DISCONNECTED').length > 0, 'the link is given up')
      await cameBack(stage, 2)
      assert.deepEqual(story(stage), [...LINKED, 'DISCONNECTED connection_lost', 'CONNECTED'])
    })
  )

  for (const mode of ['hang', 'hang_connect']) {
    test(
      `a proxy that does not answer (${mode}) is given up after 30 s`,
      play(async stage => {
        await ofProxy(stage, { mode })
        stage.startWorker()
        await within(HANGING_MS, () => stage.events('PROXY_ERROR').length > 0, 'the proxy is given up')
        assert.deepEqual(story(stage), ['PROXY_ERROR timeout'])
        await ofProxy(stage, { mode: 'none' })
        await stage.event('QR_CODE')
        assert.deepEqual(story(stage), ['PROXY_ERROR timeout', 'QR_CODE'])
      })
    )
  }

  test(
    'QR codes that nobody scans are used up, and there are new ones',
    play(async stage => {
      stage.startWorker(timesAsFast(10))
      await within(HANGING_MS, () => stage.events('DISCONNECTED').length > 0, 'the codes are used up')
      await stage.event('QR_CODE', 7)
      const six = Array.from({ length: 6 }, () => 'QR_CODE')
      assert.deepEqual(story(stage), [...six, 'DISCONNECTED qr_expired', 'QR_CODE'])
      const { qr } = await stage.event('QR_CODE', 7)
      await stage.control('/scan', { qr, phone: PHONE })
      await stage.event('CONNECTED')
    })
  )

  const PROXIES: readonly (readonly (readonly [fault: Record<string, unknown>, word: string])[])[] = [
    [
      [{ mode: 'wrong_password' }, 'auth_failed'],
      [{ mode: 'no_method' }, 'auth_refused'],
      [{ mode: 'refuse' }, 'refused']
    ],
    [
      [{ mode: 'close' }, 'closed'],
      [{ mode: 'garbage' }, 'not_socks'],
      [{ mode: 'reply', reply: 1 }, 'connect_refused']
    ],
    [
      [{ mode: 'reply', reply: 2 }, 'connect_refused'],
      [{ mode: 'close' }, 'closed'],
      [{ mode: 'reply', reply: 3 }, 'connect_refused']
    ],
    [
      [{ mode: 'reply', reply: 4 }, 'connect_refused'],
      [{ mode: 'close' }, 'closed'],
      [{ mode: 'reply', reply: 5 }, 'connect_refused']
    ]
  ]
  for (const faults of PROXIES) {
    const names = faults.map(([{ mode, reply }]) => (reply === undefined ? mode : `${mode} ${reply}`))
    test(
      `a proxy that fails (${names.join(', ')}) is named, and tried until it works`,
      play(async stage => {
        await stage.linkedWorker()
        const told = [...LINKED, DROPPED]
        for (const [fault, word] of faults) {
          await ofProxy(stage, fault)
          if (told.length === LINKED.length + 1) await stage.control('/drop', { phone: PHONE })
          told.push(`PROXY_ERROR ${word}`)
          await storyIs(stage, told)
        }
        await ofProxy(stage, { mode: 'none' })
        await cameBack(stage, 2)
        assert.deepEqual(story(stage), [...told, 'CONNECTED'])
        assert.doesNotMatch(JSON.stringify(stage.events('PROXY_ERROR')), /secret|127\.0\.0\.1|me:/)
      })
    )
  }

  test(
    'a proxy of an unknown name, and a certificate that is not trusted, are told as errors of the proxy',
    play(async stage => {
      const [proxy] = stage.running.proxies
      let worker = await stage.linkedWorker()
      worker = await restart(stage, worker, {
        PROXY_URL: `socks5h://me:a%20secret@no-such-proxy.invalid:${proxy?.port}`
      })
      await storyIs(stage, [...LINKED, 'PROXY_ERROR unknown_host'])
      assert.equal(await dialled(stage), LINKED_DIALS)
      worker = await restart(stage, worker, { NODE_EXTRA_CA_CERTS: '' })
      await storyIs(stage, [...LINKED, 'PROXY_ERROR unknown_host', 'PROXY_ERROR tls_not_trusted'])
      assert.equal((await account(stage))?.logins, 1)
      await restart(stage, worker)
      await cameBack(stage, 2)
    })
  )

  test(
    'a connection dropped by the server or by the proxy is made anew; one that is to restart, soon',
    play(async stage => {
      await stage.linkedWorker()
      await stage.control('/stream-error', { phone: PHONE, code: 515 })
      await cameBack(stage, 2)
      await stage.control('/drop', { phone: PHONE })
      await cameBack(stage, 3)
      assert.deepEqual(await stage.control('/proxies/1/drop', {}), { count: 1 })
      await cameBack(stage, 4)
      const restarted = ['DISCONNECTED restart_required', 'CONNECTED']
      assert.deepEqual(story(stage), [...LINKED, ...restarted, DROPPED, 'CONNECTED', DROPPED, 'CONNECTED'])
    })
  )

  test(
    'a restart that is asked for again and again is no storm',
    play(async stage => {
      await stage.linkedWorker()
      await ofServer(stage, { kind: 'login_failure', code: 515, times: 2 })
      await stage.control('/drop', { phone: PHONE })
      await cameBack(stage, 2)
      const pauses = (await dialGaps(stage)).slice(-2)
      assert.ok(
        pauses.every((pause, index) => pause >= 1_000 * 2 ** index),
        `no growing pauses: ${pauses}`
      )
    })
  )

  test(
    'a stream error that may pass (408, 428, 500, 503) is told, and the link made anew with the same credentials',
    play(async stage => {
      await stage.linkedWorker()
      const told = [...LINKED]
      for (const [index, code] of [500, 503, 408, 428].entries()) {
        await stage.control('/stream-error', { phone: PHONE, code })
        await cameBack(stage, 2 + index)
        told.push(`DISCONNECTED stream_error_${code}`, 'CONNECTED')
        assert.deepEqual(story(stage), told)
      }
    })
  )

  test(
    'a login that fails for the moment (500, 503) is tried again, and the same word is told once',
    play(async stage => {
      await stage.linkedWorker()
      await ofServer(stage, { kind: 'login_failure', code: 500, times: 2 })
      await ofServer(stage, { kind: 'login_failure', code: 503, times: 1 })
      await stage.control('/drop', { phone: PHONE })
      await cameBack(stage, 2)
      const failures = ['DISCONNECTED failure_500', 'DISCONNECTED failure_503']
      assert.deepEqual(story(stage), [...LINKED, DROPPED, ...failures, 'CONNECTED'])
      assert.equal(await dialled(stage), LINKED_DIALS + 4)
    })
  )

  test(
    'an HTTP error in the place of a websocket (503, 429, 403) does not leave it waiting',
    play(async stage => {
      await stage.linkedWorker()
      for (const code of [503, 429, 403]) await ofServer(stage, { kind: 'http_error', code, times: 1 })
      await stage.control('/drop', { phone: PHONE })
      await cameBack(stage, 2)
      const told = [503, 429, 403].map(code => `DISCONNECTED http_${code}`)
      assert.deepEqual(story(stage), [...LINKED, DROPPED, ...told, 'CONNECTED'])
      const pauses = (await dialGaps(stage)).slice(-3)
      assert.ok(
        pauses.every((pause, index) => pause >= 1_000 * 2 ** index),
        `no growing pauses: ${pauses}`
      )
    })
  )

  test(
    'replaced by another program, it stays away until it is started again',
    play(async stage => {
      const worker = await stage.linkedWorker()
      await stage.control('/replace', { phone: PHONE })
      await storyIs(stage, [...LINKED, 'DISCONNECTED replaced'])
      await staysAway(stage, worker, LINKED_DIALS)
      await restart(stage, worker)
      await cameBack(stage, 2)
    })
  )

  test(
    'removed on the phone, it is logged out and stays away; started again, it is refused (401) and keeps its credentials',
    play(async stage => {
      const worker = await stage.linkedWorker()
      await stage.control('/log-out', { phone: PHONE })
      await storyIs(stage, [...LINKED, 'DISCONNECTED logged_out'])
      await staysAway(stage, worker, LINKED_DIALS)
      const next = await restart(stage, worker)
      await storyIs(stage, [...LINKED, 'DISCONNECTED logged_out', 'DISCONNECTED logged_out'])
      await staysAway(stage, next, LINKED_DIALS + 1)
    })
  )

  test(
    'blocked (403), in the session or at login, it stays away and keeps its credentials',
    play(async stage => {
      let worker: Program = await stage.linkedWorker()
      await stage.control('/ban', { phone: PHONE })
      await storyIs(stage, [...LINKED, 'AUTH_FAILURE status_403'])
      await staysAway(stage, worker, LINKED_DIALS)
      worker = await restart(stage, worker)
      await storyIs(stage, [...LINKED, 'AUTH_FAILURE status_403', 'AUTH_FAILURE status_403'])
      await staysAway(stage, worker, LINKED_DIALS + 1)
      await stage.control('/unban', { phone: PHONE })
      await restart(stage, worker)
      await cameBack(stage, 2)
    })
  )

  test(
    'too old for WhatsApp (405), it stays away and keeps its credentials',
    play(async stage => {
      const worker = await stage.linkedWorker()
      await ofServer(stage, { kind: 'login_failure', code: 405, times: 1 })
      await stage.control('/drop', { phone: PHONE })
      await storyIs(stage, [...LINKED, DROPPED, 'AUTH_FAILURE client_outdated'])
      await staysAway(stage, worker, LINKED_DIALS + 1)
      await restart(stage, worker)
      await cameBack(stage, 2)
    })
  )
})
