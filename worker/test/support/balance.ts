/** What must be true after any number of crashes: all that was to be sent is shown once, all that was written is told once. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Queue } from './queue.js'
import type { Stage } from './stage.js'

export async function assertNothingLost(
  stage: Stage,
  queue: Queue,
  { sent, received }: { sent: readonly string[]; received: readonly string[] }
): Promise<void> {
  await stage.until(() => queue.isEmpty, 'all messages are settled')
  await stage.until(() => textsTold(stage).length >= received.length, 'all that was written is told')
  const shown = await stage.shown()
  assert.deepEqual(shown.map(({ text }) => text).sort(), [...sent].sort())
  assert.deepEqual(textsTold(stage).sort(), [...received].sort())
  assert.deepEqual(await unreadable(stage), [], 'a phone could not read a stanza')
  assert.deepEqual(askedAgain(stage), [], 'a phone asked for a message again')
  const { requests } = await stage.control('/state')
  assert.equal(requests['receipt:retry:retry'], undefined, 'the worker could not read a message')
}

/** Numbered events, each once: one that is told again must say the same, and no number is missing. */
export function eventsOnce(stage: Stage): Record<string, unknown>[] {
  const byNumber = new Map<unknown, string>()
  for (const event of stage.events()) {
    const said = JSON.stringify(event)
    assert.equal(byNumber.get(event['sequence']) ?? said, said, 'a number was given twice')
    byNumber.set(event['sequence'], said)
  }
  assert.deepEqual(
    [...byNumber.keys()],
    Array.from(byNumber.keys(), (_, index) => index + 1)
  )
  const events = [...byNumber.values()].map(text => JSON.parse(text))
  assert.ok(events.every(({ stream }) => stream === events[0].stream))
  return events
}

export function textsTold(stage: Stage): string[] {
  const received = eventsOnce(stage).filter(({ type }) => type === 'MESSAGE_RECEIVED')
  return received.map(({ data }) => String((data as Record<string, unknown>)['text']))
}

async function unreadable(stage: Stage): Promise<unknown[]> {
  const wire: { text: string | null }[] = await stage.control('/wire')
  return wire.filter(({ text }) => text === null)
}

/** From the simulator's own notes: what any phone, the account's own included, could not read. */
function askedAgain(stage: Stage): string[] {
  const notes = readFileSync(join(stage.folder, 'simulator/whatsapp/state.log'), 'utf8')
  return notes.split('\n').filter(line => line.startsWith('["retries"'))
}
