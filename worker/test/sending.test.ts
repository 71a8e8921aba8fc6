/** Every way in which a send may end, from what WhatsApp really does to it to what the server is told. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CONTACT, PHONE, preload, Stage } from './support/stage.js'
import { dialled, linkedImpatient, onStage, restart, seen } from './support/watch.js'

const OTHERS = ['12025550102', '12025550103', '12025550104'] as const
const LOOK_UP = 'usync:get:usync'
const TYPING = 'chatstate:-:composing'
/** Typed for three seconds, the longest that anything is. */
const LONG = 'a long word '.repeat(12)
const HOUR_MS = 3_600_000

const play = (body: (stage: Stage) => Promise<void>) => onStage(body, () => Stage.open())

/** The report of the next attempt: `ack`, or what the nack says. */
async function ending(stage: Stage, nth: number): Promise<string> {
  const { call, body } = await stage.settled(nth)
  return call === 'ack' ? 'ack' : `${body['class']} ${body['error']}`
}

const fault = (stage: Stage, one: Record<string, unknown>) => stage.control('/faults', one)
const wire = (stage: Stage): Promise<{ id: string; at: number; devices: string[]; answer: string }[]> =>
  stage.control('/wire')

/** When a stanza was first seen, and when it was last looked for in vain. */
async function sighting(stage: Stage, stanza: string): Promise<{ unseen: number; seen: number }> {
  let unseen = Date.now()
  await stage.until(async () => {
    const asked = Date.now()
    if ((await seen(stage, stanza)) > 0) return true
    unseen = asked
    return false
  }, stanza)
  return { unseen, seen: Date.now() }
}

/** It was found and is being typed, which takes a while: the moment to change the world behind its back. */
async function whileTyping(stage: Stage, act: () => Promise<unknown>): Promise<void> {
  const before = await seen(stage, TYPING)
  await stage.until(async () => (await seen(stage, TYPING)) > before, 'typing')
  await act()
  assert.equal((await wire(stage)).length, 0, 'too late: it is sent')
}

describe('a message', { concurrency: 6 }, () => {
  test(
    'that WhatsApp takes is acknowledged, and one that it refuses is told by its code',
    play(async stage => {
      await stage.linkedWorker()
      const ROWS: readonly (readonly [fault: Record<string, unknown> | null, ending: string])[] = [
        [null, 'ack'],
        [{ code: 429 }, 'rate_limited status_429'],
        [{ code: 463 }, 'restricted status_463'],
        [{ code: 463, ms: HOUR_MS }, 'restricted status_463'],
        [{ code: 400 }, 'refused status_400'],
        [{ code: 503 }, 'retryable status_503'],
        [null, 'ack']
      ]
      for (const [index, [refusal, expected]] of ROWS.entries()) {
        if (refusal) await fault(stage, { kind: 'ack_error', times: 1, ...refusal })
        stage.offer(`number ${index}`)
        assert.equal(await ending(stage, index + 1), expected)
      }
      const untils = stage.switchboard.of('nack').map(({ body }) => body['until'])
      const [, , until] = untils
      assert.ok(Math.abs(Number(until) - Date.now() - HOUR_MS) < 60_000, `until ${until}`)
      assert.deepEqual(untils.toSpliced(2, 1), [null, null, null, null])
      assert.deepEqual(
        (await stage.shown()).map(({ text }) => text),
        ['number 0', 'number 6']
      )
    })
  )

  test(
    'to a number that is not on WhatsApp never leaves, and nobody is looked up twice',
    play(async stage => {
      await stage.linkedWorker()
      await stage.control('/absent', { phones: [CONTACT], absent: true })
      const before = await seen(stage, LOOK_UP)
      stage.offer('hello?')
      assert.equal(await ending(stage, 1), 'not_on_whatsapp not_on_whatsapp')
      assert.equal(await seen(stage, LOOK_UP), before + 1)
      stage.offer('hello again?')
      assert.equal(await ending(stage, 2), 'not_on_whatsapp not_on_whatsapp')
      assert.equal(await seen(stage, LOOK_UP), before + 1)
      assert.deepEqual(await wire(stage), [])
      stage.offer('hello you', { to: OTHERS[0] })
      assert.equal(await ending(stage, 3), 'ack')
      const found = await seen(stage, LOOK_UP)
      stage.offer('hello you again', { to: OTHERS[0] })
      assert.equal(await ending(stage, 4), 'ack')
      assert.equal(await seen(stage, LOOK_UP), found)
    })
  )

  test(
    'whose recipient WhatsApp says nothing about does not leave, and may be tried again',
    play(async stage => {
      await linkedImpatient(stage)
      await fault(stage, { kind: 'mute', request: LOOK_UP, times: 1 })
      const ids = stage.offer('who are you?')
      assert.equal(await ending(stage, 1), 'retryable lookup_unanswered')
      assert.deepEqual(await wire(stage), [])
      stage.offer('who are you?', { ...ids, attempt: 2 })
      assert.equal(await ending(stage, 2), 'ack')
      assert.equal((await stage.shown()).length, 1)
    })
  )

  test(
    'whose recipient WhatsApp answers for with neither yes nor no does not leave, and may be tried again',
    play(async stage => {
      await stage.linkedWorker(PHONE, preload('blank_look_up'))
      const ids = stage.offer('are you there?')
      assert.equal(await ending(stage, 1), 'retryable lookup_unanswered')
      assert.deepEqual(await wire(stage), [])
      stage.offer('are you there?', { ...ids, attempt: 2 })
      assert.equal(await ending(stage, 2), 'ack')
    })
  )

  test(
    'that nobody but our own phone can read is never acknowledged, whatever WhatsApp says',
    play(async stage => {
      await stage.linkedWorker()
      const ids = stage.offer(LONG)
      await whileTyping(stage, () => stage.control('/absent', { phones: [CONTACT], absent: true }))
      assert.equal(await ending(stage, 1), 'retryable no_recipient_device')
      const [sent, ...others] = await wire(stage)
      assert.deepEqual([sent?.id, sent?.answer, others.length], [ids.whatsappId, 'ack', 0])
      assert.ok(sent?.devices.length && sent.devices.every(device => !device.startsWith(CONTACT)))
      assert.deepEqual(await stage.shown(), [])
    })
  )

  test(
    'whose recipient has no keys is never acknowledged, and goes out once there are some',
    play(async stage => {
      await stage.linkedWorker()
      const { id } = await fault(stage, { kind: 'no_prekeys' })
      const ids = stage.offer('a secret')
      assert.notEqual(await ending(stage, 1), 'ack')
      assert.deepEqual(await stage.shown(), [])
      await stage.control(`/faults/${id}`, undefined, 'DELETE')
      stage.offer('a secret', { ...ids, attempt: 2 })
      assert.equal(await ending(stage, 2), 'ack')
      assert.equal((await stage.shown()).length, 1)
    })
  )

  test(
    'whose devices WhatsApp does not name is never acknowledged',
    play(async stage => {
      await stage.linkedWorker()
      const ids = stage.offer(LONG)
      await whileTyping(stage, () => fault(stage, { kind: 'mute', request: LOOK_UP, times: 1 }))
      assert.equal(await ending(stage, 1), 'retryable no_recipient_device')
      assert.deepEqual(await stage.shown(), [])
      stage.offer(LONG, { ...ids, attempt: 2 })
      assert.equal(await ending(stage, 2), 'ack')
      assert.deepEqual(
        (await stage.shown()).map(({ id }) => id),
        [ids.whatsappId]
      )
    })
  )

  test(
    'without an answer is unconfirmed; sent again under its id, it is shown once',
    play(async stage => {
      await linkedImpatient(stage)
      await fault(stage, { kind: 'no_ack', times: 1 })
      const ids = stage.offer('did you get this?')
      assert.equal(await ending(stage, 1), 'unconfirmed no_server_ack')
      stage.offer('did you get this?', { ...ids, attempt: 2 })
      assert.equal(await ending(stage, 2), 'ack')
      const shown = await stage.shown()
      assert.deepEqual(
        shown.map(({ id, stanzas }) => [id, stanzas]),
        [[ids.whatsappId, 2]]
      )
    })
  )

  for (const [kind, meaning, stanzas] of [
    ['drop_before_ack', 'that was taken', 2],
    ['drop_message', 'that was not taken', 1]
  ] as const) {
    test(
      `${meaning} before the connection broke is unconfirmed; sent again under its id, it is shown once`,
      play(async stage => {
        await stage.linkedWorker()
        await fault(stage, { kind, times: 1 })
        const ids = stage.offer('can you hear me?')
        assert.equal(await ending(stage, 1), 'unconfirmed connection_lost')
        stage.offer('can you hear me?', { ...ids, attempt: 2 })
        assert.equal(await ending(stage, 2), 'ack')
        const shown = await stage.shown()
        assert.deepEqual(
          shown.map(one => [one.id, one.stanzas]),
          [[ids.whatsappId, stanzas]]
        )
        assert.equal((await wire(stage)).length, 2)
      })
    )
  }

  test(
    "that the recipient's phone can't read is sent again when it asks, also by the next process",
    play(async stage => {
      const worker = await stage.linkedWorker()
      await fault(stage, { kind: 'undecryptable', times: 1 })
      const first = stage.offer('in other words')
      assert.equal(await ending(stage, 1), 'ack')
      await stage.until(async () => (await stage.shown()).length === 1, 'shown after all')
      await fault(stage, { kind: 'undecryptable', times: 1 })
      await fault(stage, { kind: 'drop_before_ack', times: 1 })
      const second = stage.offer('and in others', { to: OTHERS[0] })
      assert.equal(await ending(stage, 2), 'unconfirmed connection_lost')
      await restart(stage, worker)
      await stage.until(async () => (await stage.shown()).length === 2, 'shown after a restart')
      const shown = (await stage.shown()).map(({ id, text }) => [id, text])
      assert.deepEqual(shown, [
        [first.whatsappId, 'in other words'],
        [second.whatsappId, 'and in others']
      ])
    })
  )

  test(
    'is typed for one to three seconds before it leaves',
    play(async stage => {
      await stage.linkedWorker()
      stage.offer('short')
      const began = await sighting(stage, TYPING)
      assert.deepEqual(await wire(stage), [])
      const ended = await sighting(stage, 'chatstate:-:paused')
      // Each happened between two looks.
      assert.ok(ended.seen - began.unseen >= 1_000, `at most ${ended.seen - began.unseen} ms`)
      assert.ok(ended.unseen - began.seen <= 3_000, `at least ${ended.unseen - began.seen} ms`)
      assert.equal(await ending(stage, 1), 'ack')
    })
  )

  test(
    'leaves in its turn, and a URL in it is not visited',
    play(async stage => {
      await stage.linkedWorker()
      const dials = await dialled(stage)
      const texts = ['see https://www.whatsapp.com/about', 'and https://example.whatsapp.net/', 'and', 'bye']
      for (const [index, text] of texts.entries()) stage.offer(text, { to: OTHERS[index % OTHERS.length] })
      for (const index of texts.keys()) assert.equal(await ending(stage, index + 1), 'ack')
      assert.deepEqual(
        (await stage.shown()).map(({ text }) => text),
        texts
      )
      assert.equal(await dialled(stage), dials)
    })
  )

  test(
    'waits for a link that is down, ten seconds and not longer',
    play(async stage => {
      await stage.linkedWorker()
      const breakLink = async () => {
        await stage.control('/proxies/1/fault', { mode: 'refuse' })
        await stage.control('/drop', { phone: PHONE })
      }
      await breakLink()
      await stage.event('PROXY_ERROR')
      stage.offer('soon')
      await stage.until(() => !stage.switchboard.isPolled, 'it is taken on')
      await stage.control('/proxies/1/fault', { mode: 'none' })
      assert.equal(await ending(stage, 1), 'ack')
      await breakLink()
      await stage.event('DISCONNECTED', 2)
      const began = Date.now()
      stage.offer('later')
      assert.equal(await ending(stage, 2), 'retryable not_connected')
      assert.ok(Date.now() - began >= 10_000)
      assert.deepEqual(
        (await stage.shown()).map(({ text }) => text),
        ['soon']
      )
    })
  )
})
