import assert from 'node:assert/strict'
import { closeSync, openSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Journal, JournalFull } from '../src/journal.js'
import { directly, readRecord } from '../src/record.js'
import { DamagedFile } from '../src/storage_errors.js'
import type { Report } from '../src/types.js'
import { chance, runToEnd, runUntilKilled, temporaryFolder, withoutFullDisk } from './support/disk.js'

function event(n: number, padding = 0): Report {
  return { kind: 'event', type: 'MESSAGE_RECEIVED', timestamp: n, data: { n, text: 'ש'.repeat(padding) } }
}

function ack(n: number): Report {
  return { kind: 'ack', body: { n } }
}

/** Tells everything that waits. */
function tellAll(journal: Journal): { report: Report; sequence: number | null }[] {
  const told = []
  for (let entry = journal.next(); entry; entry = journal.next()) {
    told.push({ ...entry })
    journal.told(entry)
  }
  return told
}

test('reports are told in order, events are numbered without gaps, and a restart goes on where it was', context => {
  const folder = temporaryFolder(context)
  let journal = Journal.open(folder)
  const { stream } = journal
  assert.match(stream, /^[A-Za-z0-9]{16}$/)
  assert.equal(journal.next(), null)
  for (const report of [event(1), ack(2), event(3), { kind: 'nack', body: { n: 4 } } as const]) journal.add(report)
  const first = journal.next()
  assert.deepEqual(first, { report: event(1), sequence: 1 })
  assert.equal(journal.next(), first)
  assert.ok(first)
  journal.told(first)
  journal.close()
  journal = Journal.open(folder)
  assert.equal(journal.stream, stream)
  assert.equal(journal.length, 3)
  journal.add(event(5))
  assert.deepEqual(tellAll(journal), [
    { report: ack(2), sequence: null },
    { report: event(3), sequence: 2 },
    { report: { kind: 'nack', body: { n: 4 } }, sequence: null },
    { report: event(5), sequence: 3 }
  ])
  assert.equal(journal.length, 0)
  journal.close()
  journal = Journal.open(folder)
  assert.equal(journal.next(), null)
  journal.close()
})

test('an entry is told once, and only the oldest', context => {
  const journal = Journal.open(temporaryFolder(context))
  journal.add(event(1))
  journal.add(event(2))
  const entry = journal.next()
  assert.ok(entry)
  journal.told(entry)
  assert.throws(() => journal.told(entry), /once/)
  assert.throws(() => journal.told({ report: event(2), sequence: 2 }), /once/)
  assert.equal(journal.length, 1)
  journal.close()
})

test('a key counts once among the last 2,000, also after restarts and rewriting', context => {
  const folder = temporaryFolder(context)
  let journal = Journal.open(folder)
  const sizes: number[] = []
  for (let n = 1; n <= 5000; n += 1) {
    assert.equal(journal.add(event(n, 50), `received/972500000000/${n}`), true)
    if (n % 3 === 0) tellAll(journal)
    if (n % 700 === 0) {
      journal.close()
      journal = Journal.open(folder)
    }
    sizes.push(statSync(join(folder, 'journal.dat')).size)
    assert.equal(journal.add(event(n), `received/972500000000/${n}`), false)
    assert.ok(journal.knows(`received/972500000000/${n}`) && !journal.knows(`received/972500000000/${n + 1}`))
  }
  assert.ok(Math.max(...sizes) < 500_000, 'it was rewritten on the way')
  tellAll(journal)
  for (const opened of [journal, Journal.open(folder)]) {
    for (const n of [3001, 3002, 4000, 5000]) assert.equal(opened.add(event(n), `received/972500000000/${n}`), false)
    opened.close()
  }
  journal = Journal.open(folder)
  assert.equal(journal.add(event(3000), 'received/972500000000/3000'), true, 'forgotten by now')
  assert.equal(journal.add(event(3001), 'received/972500000000/3001'), true, 'pushed out by the one before')
  assert.equal(journal.next()?.sequence, 5001)
  journal.close()
})

test('told reports are forgotten when all are told, with stream and numbers kept', context => {
  const folder = temporaryFolder(context)
  const journal = Journal.open(folder)
  for (let n = 1; n <= 1000; n += 1) journal.add(event(n, 200))
  const before = statSync(join(folder, 'journal.dat')).size
  assert.ok(before > 400_000)
  tellAll(journal)
  assert.ok(statSync(join(folder, 'journal.dat')).size < 256 * 1024)
  journal.add(event(1001))
  assert.equal(journal.next()?.sequence, 1001)
  journal.close()
  const opened = Journal.open(folder)
  assert.equal(opened.stream, journal.stream)
  assert.deepEqual(opened.next(), { report: event(1001), sequence: 1001 })
  opened.close()
})

test('a journal that is never quite empty does not grow without end, and an entry in hand outlives a rewrite', context => {
  const folder = temporaryFolder(context)
  const journal = Journal.open(folder, { maxBytes: 200_000 })
  let expected = 1
  for (let n = 1; n <= 2000; n += 1) {
    const inHand = journal.next()
    journal.add(event(n, 300))
    if (!inHand || n < 10) continue
    assert.equal(inHand.sequence, expected)
    assert.deepEqual(inHand.report, event(expected, 300))
    journal.told(inHand)
    expected += 1
  }
  assert.equal(journal.length, 9)
  journal.close()
})

test('a full journal refuses more, keeps what it has, and takes more once some is told', context => {
  const folder = temporaryFolder(context)
  let journal = Journal.open(folder, { maxBytes: 100_000 })
  let added = 0
  assert.throws(() => {
    for (;;) {
      journal.add(event(added + 1, 100), `key/${added + 1}`)
      added += 1
    }
  }, JournalFull)
  assert.equal(journal.length, added)
  journal.close()
  journal = Journal.open(folder, { maxBytes: 100_000 })
  assert.throws(() => journal.add(event(0, 100), `key/${added + 1}`), /server has not answered/)
  for (let n = 1; n <= added / 2; n += 1) {
    const entry = journal.next()
    assert.equal(entry?.sequence, n)
    if (entry) journal.told(entry)
  }
  assert.equal(journal.add(event(added + 1, 100), `key/${added + 1}`), true)
  assert.equal(tellAll(journal).at(-1)?.sequence, added + 1)
  journal.close()
})

test('any sequence of reports, answers and restarts equals a plain list', context => {
  for (const seed of [1, 2, 3]) {
    const folder = temporaryFolder(context)
    const random = chance(seed)
    const waiting: { report: Report; sequence: number | null }[] = []
    let journal = Journal.open(folder)
    const { stream } = journal
    let sequence = 0
    for (let step = 0; step < 3000; step += 1) {
      const growing = step % 1000 < 600
      if (random(100) < (growing ? 60 : 30)) {
        const report = random(3) === 0 ? ack(step) : event(step, random(800))
        waiting.push({ report, sequence: report.kind === 'event' ? ++sequence : null })
        journal.add(report)
      } else {
        const entry = journal.next()
        assert.deepEqual(entry, waiting.shift() ?? null)
        if (entry) journal.told(entry)
      }
      if (random(100) === 0) {
        journal.close()
        journal = Journal.open(folder)
      }
      assert.equal(journal.length, waiting.length)
    }
    assert.equal(journal.stream, stream)
    assert.deepEqual(tellAll(journal), waiting)
    journal.close()
  }
})

test('a file cut at any byte opens with the reports before the cut', context => {
  const folder = temporaryFolder(context)
  const path = join(folder, 'journal.dat')
  const journal = Journal.open(folder)
  const headEnd = statSync(path).size
  const states = [{ end: headEnd, numbers: [] as number[] }]
  for (let n = 1; n <= 6; n += 1) {
    const numbers = [...(states.at(-1)?.numbers ?? []), n]
    journal.add(event(n), `key/${n}`)
    states.push({ end: statSync(path).size, numbers })
    const entry = journal.next()
    if (n % 2 === 0 && entry) {
      journal.told(entry)
      states.push({ end: statSync(path).size, numbers: numbers.slice(1) })
    }
  }
  journal.close()
  const whole = readFileSync(path)
  for (let cut = 0; cut <= whole.length; cut += 1) {
    writeFileSync(path, whole.subarray(0, cut))
    const opened = Journal.open(folder)
    const expected = states.findLast(({ end }) => end <= cut)?.numbers ?? []
    assert.equal(opened.stream === journal.stream, cut >= headEnd, `stream when cut at ${cut}`)
    const told = tellAll(opened)
    assert.deepEqual(
      told.map(({ sequence }) => sequence),
      expected,
      `cut at ${cut}`
    )
    for (const n of expected) assert.equal(opened.add(event(n), `key/${n}`), false)
    opened.close()
  }
})

test('no room to forget what is told is no harm: the journal goes on and does it later', {
  skip: withoutFullDisk()
}, context => {
  const folder = temporaryFolder(context)
  const path = join(folder, 'journal.dat')
  const journal = Journal.open(folder)
  symlinkSync('/dev/full', `${path}.new`)
  let n = 0
  const tellOneMore = () => {
    journal.add(event(++n, 500))
    assert.deepEqual(tellAll(journal), [{ report: event(n, 500), sequence: n }])
    assert.ok(n < 5000, 'it should have been rewritten by now')
  }
  while (readdirSync(folder).length > 1) tellOneMore()
  const size = statSync(path).size
  while (statSync(path).size >= size) tellOneMore()
  journal.close()
  const opened = Journal.open(folder)
  assert.equal(opened.length, 0)
  opened.close()
})

test('nothing is handed out to be told before it is durable', context => {
  const folder = temporaryFolder(context)
  const path = join(folder, 'journal.dat')
  const journal = Journal.open(folder)
  for (let n = 1; n <= 20; n += 1) {
    journal.add(event(n))
    if (n % 3 === 0) tellAll(journal)
  }
  journal.close()
  const fd = openSync(path, 'r')
  const read = directly(fd, statSync(path).size)
  let marks = 0
  for (let record = readRecord(read, 8); record; record = readRecord(read, record.end)) {
    const { toldTo } = JSON.parse(record.bytes.toString())
    if (toldTo === undefined) continue
    marks += 1
    assert.ok(record.durable >= toldTo)
  }
  closeSync(fd)
  assert.equal(marks, 18)
})

test('a damaged journal is an error once, then a new stream', context => {
  const folder = temporaryFolder(context)
  const path = join(folder, 'journal.dat')
  const journal = Journal.open(folder)
  for (let n = 1; n <= 3; n += 1) {
    journal.add(event(n))
    journal.next()
    journal.told(journal.next() ?? assert.fail())
  }
  journal.close()
  const damaged = readFileSync(path)
  damaged.writeUInt8(1, 30)
  writeFileSync(path, damaged)
  assert.throws(() => Journal.open(folder), DamagedFile)
  const opened = Journal.open(folder)
  assert.notEqual(opened.stream, journal.stream)
  assert.equal(opened.length, 0)
  opened.close()
})

test('news waits until there is something, is there at once if there is, and leaves no listeners behind', async context => {
  const journal = Journal.open(temporaryFolder(context))
  const controller = new AbortController()
  let told = false
  const news = journal.news(controller.signal).then(() => {
    told = true
  })
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(told, false)
  journal.add(event(1))
  await news
  await journal.news()
  tellAll(journal)
  const waiting = journal.news(controller.signal)
  controller.abort(new Error('stopping'))
  await assert.rejects(waiting, /stopping/)
  await assert.rejects(journal.news(controller.signal), /stopping/)
  const closing = journal.news()
  journal.close()
  await assert.rejects(closing, /closed/)
  await assert.rejects(journal.news(), /closed/)
})

test('SIGKILL at any moment: nothing added is lost, nothing told before the last answer is told again', async context => {
  const folder = temporaryFolder(context)
  const random = chance(7)
  let added = 0
  let told = 0
  let stream: string | undefined
  for (let kill = 0; kill < 12; kill += 1) {
    const printed = await runUntilKilled('journal', folder, 2 + random(1200))
    const [, name, , waiting, , oldest] = (printed[0] ?? '').split(' ')
    stream ??= name
    assert.equal(name, stream)
    assert.ok(Number(waiting) === 0 || Number(oldest) === told + 1, `oldest is ${oldest}, ${told} were told`)
    const addedNow = added + printed.filter(line => line === 'added true').length
    const toldNow = Number(printed.findLast(line => line.startsWith('told '))?.split(' ')[1] ?? told)
    const journal = Journal.open(folder)
    const first = journal.next()?.sequence ?? null
    assert.ok(
      first === toldNow + 1 || first === toldNow + 2 || journal.length === 0,
      `${first} after ${toldNow} was told`
    )
    told = first === null ? toldNow : first - 1
    added = told + journal.length
    assert.ok(added === addedNow || added === addedNow + 1, `${added} added, ${addedNow} were printed`)
    journal.close()
  }
})

test('a journal is crowded while more than three quarters of it wait to be told, also for the next process', context => {
  const folder = temporaryFolder(context)
  const options = { maxBytes: 100_000 }
  let journal = Journal.open(folder, options)
  const size = (): number => statSync(join(folder, 'journal.dat')).size
  while (size() <= 75_000) {
    assert.equal(journal.isCrowded, false, `at ${size()} bytes`)
    journal.add(event(1, 400))
  }
  assert.equal(journal.isCrowded, true)
  journal.close()
  journal = Journal.open(folder, options)
  assert.equal(journal.isCrowded, true)
  for (let told = 0; told < 3; told += 1) {
    const entry = journal.next()
    assert.ok(entry)
    journal.told(entry)
  }
  assert.equal(journal.isCrowded, false, 'what is told takes no room')
  tellAll(journal)
  assert.equal(journal.isCrowded, false)
  journal.close()
})

test('a full disk refuses the report and keeps those before it', async context => {
  const folder = temporaryFolder(context)
  const [line = ''] = await runToEnd('journal-full', folder, 200)
  const { added, message, length } = JSON.parse(line)
  assert.equal(message, `no space left to write in ${folder}: free some space`)
  assert.equal(length, added)
  const journal = Journal.open(folder)
  journal.add(event(0))
  const sequences = tellAll(journal).map(({ sequence }) => sequence)
  assert.deepEqual(
    sequences,
    Array.from({ length: added + 1 }, (_, n) => n + 1)
  )
  journal.close()
})
