/** What becomes of a received message between its decryption and the journal. */
import './support/held_sync.js'
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { AuthStore } from '../src/auth_store.js'
import { Inbox, type PhoneFor } from '../src/inbox.js'
import { Journal } from '../src/journal.js'
import { type Letter, letterIn } from '../src/stanzas.js'
import { temporaryFolder } from './support/disk.js'
import { holdSyncs } from './support/held_sync.js'

const NOW = 1_763_200_000_000
const LETTER: Letter = {
  id: 'A1',
  from: '12025550133@s.whatsapp.net',
  phone: '12025550133',
  timestamp: NOW - 5_000,
  backfilled: false
}
const unknown: PhoneFor = async () => null

function open(context: TestContext, journalBytes?: number) {
  const folder = temporaryFolder(context)
  const store = AuthStore.open(folder)
  const journal = Journal.open(folder, journalBytes === undefined ? {} : { maxBytes: journalBytes })
  const broken: unknown[] = []
  const inbox = new Inbox(
    store,
    journal,
    error => broken.push(error),
    () => NOW
  )
  context.after(() => {
    journal.close()
    store.close()
  })
  const waiting = (): string[] => store.list('inbox')
  /** As the library writes it: in one step with the key that decrypted it. */
  const keep = (letter: Letter, text = 'hi') => store.set(inbox.entry(letter, text))
  return { folder, store, journal, inbox, broken, waiting, keep }
}

/** The data of all that waits to be told. */
function told(journal: Journal): unknown[] {
  const data = []
  for (let entry = journal.next(); entry; entry = journal.next()) {
    assert.ok(entry.report.kind === 'event' && entry.report.type === 'MESSAGE_RECEIVED')
    data.push(entry.report.data)
    journal.told(entry)
  }
  return data
}

test('a letter leaves the inbox only when a power cut could not take it out of the journal any more', async context => {
  const { folder, store, journal, inbox, waiting, keep } = open(context)
  await keep(LETTER)
  const disk = holdSyncs(join(folder, 'journal.dat'))
  const delivering = inbox.deliver(unknown)
  await disk.reached
  // All that was asked of the store before this is on the disk after it.
  await store.set({ mark: { last: true } })
  assert.equal(journal.length, 1)
  assert.deepEqual(waiting(), ['12025550133/A1'])
  disk.release()
  await delivering
  assert.deepEqual(waiting(), [])
})

test('a letter under a LID waits until its number is known, and is told once', async context => {
  const { journal, inbox, waiting, keep } = open(context)
  const letter = { ...LETTER, from: '777888999:4@lid', phone: null }
  await keep(letter)
  await inbox.deliver(unknown)
  assert.deepEqual([journal.length, waiting()], [0, ['777888999/A1']])
  assert.equal(inbox.knows(letter), true)
  const asked: string[] = []
  for (let time = 0; time < 2; time += 1) {
    await inbox.deliver(async address => {
      asked.push(address)
      return '12025550133'
    })
  }
  assert.deepEqual(asked, [letter.from])
  assert.deepEqual(waiting(), [])
  assert.deepEqual(told(journal), [{ from: '12025550133', whatsappId: 'A1', text: 'hi', timestamp: LETTER.timestamp }])
  assert.equal(inbox.knows(letter), true)
})

test('WhatsApp’s own account (0) is no number: its letters are not told, and do not wait for one either', async context => {
  const { journal, inbox, waiting, keep } = open(context)
  const attrs = { from: '0@s.whatsapp.net', id: 'NEWS', t: '1763199990' }
  const news = letterIn({ tag: 'message', attrs }, [], NOW)
  assert.ok(news)
  await keep(news)
  await keep(LETTER)
  await inbox.deliver(unknown)
  assert.deepEqual(waiting(), [])
  assert.deepEqual(
    told(journal).map(data => (data as Record<string, unknown>)['from']),
    [LETTER.phone]
  )
})

test('what came by way of the owner’s phone is told like any other, unless it is known', async context => {
  const { journal, inbox, waiting } = open(context)
  await inbox.receive({ ...LETTER, backfilled: true }, 'late', unknown)
  await inbox.receive(LETTER, 'late', unknown)
  assert.deepEqual(told(journal), [
    { from: LETTER.phone, whatsappId: 'A1', text: 'late', timestamp: LETTER.timestamp, backfilled: true }
  ])
  await inbox.receive({ ...LETTER, id: 'A2', from: '777888999@lid', phone: null }, 'from whom?', unknown)
  await inbox.receive({ ...LETTER, id: 'A2', from: '777888999@lid', phone: null }, 'again', unknown)
  assert.deepEqual([journal.length, waiting()], [0, ['777888999/A2']])
  await inbox.deliver(async () => LETTER.phone)
  assert.deepEqual(
    told(journal).map(data => (data as Record<string, unknown>)['text']),
    ['from whom?']
  )
})

test('a journal without room for a letter is reported as broken', async context => {
  const { inbox, broken, keep } = open(context, 1_000)
  await keep(LETTER, 'x'.repeat(1_000))
  await inbox.deliver(unknown)
  assert.match(String(broken), /^JournalFull/)
})
