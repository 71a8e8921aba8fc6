import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { reactionTo, startPeople, strangerFor, type Temperament, type Timers, temperamentOf } from '../src/people.js'
import { account, FakeWhatsApp } from './support/fake_whatsapp.js'

const ME = '972501234567'
const CONTACTS = Array.from({ length: 1000 }, (_, n) => `97252${String(1_000_000 + n * 7919)}`)

/** Time that passes when told to. */
class ManualTimers implements Timers {
  now = 0
  readonly #due = new Map<object, { at: number; act: () => void }>()

  after(ms: number, act: () => void): () => void {
    const key = {}
    this.#due.set(key, { at: this.now + ms, act })
    return () => this.#due.delete(key)
  }

  get waiting(): number {
    return this.#due.size
  }

  async pass(ms: number): Promise<void> {
    this.now += ms
    for (const [key, { at, act }] of [...this.#due].sort(([, a], [, b]) => a.at - b.at)) {
      if (at > this.now) continue
      this.#due.delete(key)
      act()
      await turn()
    }
  }
}

function contactWho(temperament: Temperament): string {
  const found = CONTACTS.find(phone => temperamentOf(phone) === temperament)
  assert.ok(found)
  return found
}

/** A message to this contact that is answered, or is not. */
function messageTo(to: string, answered: boolean): { from: string; to: string; id: string } {
  for (let n = 0; ; n += 1) {
    const message = { from: ME, to, id: `ID${n}` }
    if ((reactionTo(message).answer !== null) === answered) return message
  }
}

test('most read, some answer, a few say STOP, a few never read', () => {
  const share = (temperament: Temperament) =>
    CONTACTS.filter(phone => temperamentOf(phone) === temperament).length / 1000
  assert.ok(share('away') > 0.05 && share('away') < 0.11)
  assert.ok(share('annoyed') > 0.03 && share('annoyed') < 0.08)
  assert.ok(share('friendly') > 0.3 && share('friendly') < 0.4)
  assert.ok(share('quiet') > 0.45)
})

test('the same message is met the same way every time', () => {
  const message = { to: contactWho('friendly'), id: '3EB0' }
  assert.deepEqual(reactionTo(message), reactionTo(message))
  assert.deepEqual(strangerFor(ME, 3), strangerFor(ME, 3))
  assert.notDeepEqual(strangerFor(ME, 3), strangerFor(ME, 4))
})

test('the annoyed use each of the words to be left alone', () => {
  const annoyed = CONTACTS.filter(phone => temperamentOf(phone) === 'annoyed')
  const words = new Set(annoyed.map(to => reactionTo({ to, id: 'A' }).answer?.text))
  assert.deepEqual([...words].sort(), ['HASR', 'STOP', 'הסר'])
})

test('answers and openings come in English and in Hebrew', () => {
  const friendly = CONTACTS.filter(phone => temperamentOf(phone) === 'friendly')
  const answers = friendly.map(to => reactionTo({ to, id: 'A' }).answer?.text ?? '').join()
  const openings = Array.from({ length: 50 }, (_, round) => strangerFor(ME, round).text).join()
  for (const texts of [answers, openings]) {
    assert.match(texts, /[a-z]/)
    assert.match(texts, /[א-ת]/)
  }
})

test('a friendly contact reads first and answers later', async () => {
  const [whatsapp, timers] = [new FakeWhatsApp(), new ManualTimers()]
  startPeople(whatsapp, { timers, strangerEveryMs: 1e9 })
  const message = messageTo(contactWho('friendly'), true)
  const { readAfterMs, answer } = reactionTo(message)
  whatsapp.show(message)
  await timers.pass((readAfterMs ?? 0) - 1)
  assert.deepEqual(whatsapp.calls, [])
  await timers.pass(1)
  assert.deepEqual(whatsapp.calls, [['read', message.to, ME, message.id]])
  await timers.pass(60_000)
  assert.deepEqual(whatsapp.calls.at(-1), ['sendFrom', message.to, ME, answer?.text])
})

test('not every message is answered, and one who is away does nothing', async () => {
  const [whatsapp, timers] = [new FakeWhatsApp(), new ManualTimers()]
  startPeople(whatsapp, { timers, strangerEveryMs: 1e9 })
  whatsapp.show(messageTo(contactWho('friendly'), false))
  whatsapp.show({ from: ME, to: contactWho('away'), id: 'A' })
  await timers.pass(100_000)
  assert.deepEqual(
    whatsapp.calls.map(([name]) => name),
    ['read']
  )
})

test('a number with a linked device is left to its own program', async () => {
  const [whatsapp, timers] = [new FakeWhatsApp(), new ManualTimers()]
  startPeople(whatsapp, { timers, strangerEveryMs: 1e9 })
  const message = messageTo(contactWho('friendly'), true)
  whatsapp.list.push(account(message.to))
  whatsapp.show(message)
  await timers.pass(100_000)
  assert.deepEqual(whatsapp.calls, [])
})

test('strangers write first, to accounts that are online, again and again', async () => {
  const [whatsapp, timers] = [new FakeWhatsApp(), new ManualTimers()]
  whatsapp.list.push(account(ME), account('972500000001', { online: false }))
  startPeople(whatsapp, { timers, strangerEveryMs: 1000 })
  for (const round of [1, 2]) {
    await timers.pass(1000)
    const { phone, text } = strangerFor(ME, round)
    assert.deepEqual(whatsapp.calls.pop(), ['sendFrom', phone, ME, text])
    assert.equal(whatsapp.calls.length, 0)
  }
})

test('a failure is logged without the text, and life goes on', async () => {
  const [whatsapp, timers, lines] = [new FakeWhatsApp(), new ManualTimers(), [] as string[]]
  whatsapp.sendFrom = () => Promise.reject(new Error('not linked'))
  startPeople(whatsapp, { timers, strangerEveryMs: 1e9, log: line => lines.push(line) })
  whatsapp.show(messageTo(contactWho('friendly'), true))
  await timers.pass(100_000)
  assert.deepEqual(lines, ['people: not linked'])
})

test('stopped, nobody does anything any more', async () => {
  const [whatsapp, timers] = [new FakeWhatsApp(), new ManualTimers()]
  const stop = startPeople(whatsapp, { timers, strangerEveryMs: 1000 })
  whatsapp.show(messageTo(contactWho('friendly'), true))
  stop()
  whatsapp.show(messageTo(contactWho('friendly'), true))
  assert.equal(timers.waiting, 0)
})
