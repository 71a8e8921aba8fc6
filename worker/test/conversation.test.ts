/** Both sides write at the same moment: a session of Signal changes with every message in either direction. */
import { test } from 'node:test'
import { assertNothingLost } from './support/balance.js'
import { Queue } from './support/queue.js'
import { CONTACT, PHONE, preload, Stage } from './support/stage.js'

const HASTY = { ...preload('quick_timers', 'slow_sessions'), QUICK: '200', QUICK_BELOW_MS: '5000' }
const EACH = 60

test('while both sides write at once, each message is readable at once', { timeout: 120_000 }, async () => {
  const stage = await Stage.open()
  try {
    const queue = new Queue(stage)
    await stage.linkedWorker(PHONE, HASTY)
    const sent = Array.from({ length: EACH }, (_, n) => `from me ${n}`)
    const received = Array.from({ length: EACH }, (_, n) => `to you ${n}`)
    for (const text of sent) queue.add(CONTACT, text)
    for (const text of received) await stage.control('/send', { from: CONTACT, to: PHONE, text })
    await assertNothingLost(stage, queue, { sent, received })
  } finally {
    await stage.close()
  }
})
