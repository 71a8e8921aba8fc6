import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { AppendFile } from '../src/append_file.js'
import { DamagedFile } from '../src/storage_errors.js'
import { chance, numbered, runToEnd, runUntilKilled, temporaryFolder } from './support/disk.js'

function pathIn(context: TestContext): string {
  return join(temporaryFolder(context), 'numbers.dat')
}

/** Opens, closes, and returns what was in it. */
function recordsOf(path: string): Buffer[] {
  const records: Buffer[] = []
  AppendFile.open(path, bytes => records.push(Buffer.from(bytes))).close()
  return records
}

function open(path: string): AppendFile {
  return AppendFile.open(path, () => {})
}

test('records come back in order, also empty and huge ones, and later ones go behind them', context => {
  const path = pathIn(context)
  const random = chance(1)
  const expected: Buffer[] = []
  for (let round = 0; round < 5; round += 1) {
    const file = open(path)
    for (const length of [0, 1, random(5000), random(700_000)]) {
      const record = Buffer.alloc(length, random(256))
      const at = file.append(record)
      expected.push(record)
      assert.deepEqual(file.recordAt(at)?.bytes, record)
    }
    file.close()
    assert.deepEqual(recordsOf(path), expected)
  }
})

test('only the owner can read the file, before and after it is rewritten', context => {
  const path = pathIn(context)
  const file = open(path)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  file.rewrite([Buffer.from('a')], () => {})
  file.close()
  assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('a file cut at any byte opens with the records before the cut, and can be written again', context => {
  const path = pathIn(context)
  const file = open(path)
  const all = ['one', '', 'three', 'the fourth'].map(text => Buffer.from(text))
  const ends = all.map(record => {
    file.append(record)
    return file.size
  })
  file.close()
  const whole = readFileSync(path)
  for (let cut = 0; cut <= whole.length; cut += 1) {
    writeFileSync(path, whole.subarray(0, cut))
    const kept = all.slice(0, ends.filter(end => end <= cut).length)
    assert.deepEqual(recordsOf(path), kept, `cut at ${cut}`)
    const again = open(path)
    again.append(Buffer.from('new'))
    again.close()
    assert.deepEqual(recordsOf(path), [...kept, Buffer.from('new')], `cut at ${cut}, written again`)
  }
  assert.deepEqual(readdirSync(join(path, '..')), ['numbers.dat'])
})

test('a tail of zeros or of noise is cut off', context => {
  const path = pathIn(context)
  const file = open(path)
  file.append(Buffer.from('good'))
  file.close()
  const random = chance(2)
  const noise = Buffer.from(Array.from({ length: 20_000 }, () => random(256)))
  for (const tail of [Buffer.alloc(10_000), noise, Buffer.alloc(5_000, 0xff), readFileSync(path).subarray(8)]) {
    appendFileSync(path, tail)
    assert.deepEqual(recordsOf(path), [Buffer.from('good')])
  }
})

test('any changed byte of durable records is an error that keeps the file aside', context => {
  const path = pathIn(context)
  const file = open(path)
  for (const text of ['first', 'second', 'third']) {
    file.append(Buffer.from(text))
    file.syncNow()
  }
  const lastRecord = file.size - 'third'.length - 16
  file.close()
  const whole = readFileSync(path)
  for (let at = 0; at < lastRecord; at += 1) {
    const damaged = Buffer.from(whole)
    damaged.writeUInt8(whole.readUInt8(at) ^ 0x10, at)
    writeFileSync(path, damaged)
    let aside = ''
    assert.throws(
      () => recordsOf(path),
      (error: Error) => {
        assert.ok(error instanceof DamagedFile)
        aside = error.keptAs ?? ''
        return error.message.includes(path) && error.message.includes('restore a backup')
      },
      `byte ${at}`
    )
    assert.deepEqual(readFileSync(aside), damaged)
    assert.ok(!existsSync(path))
  }
})

test('damage to a rewritten file is seen too', context => {
  const path = pathIn(context)
  const file = open(path)
  file.rewrite([Buffer.from('first'), Buffer.from('second')], () => {})
  file.close()
  const damaged = readFileSync(path)
  damaged.writeUInt8(0, 8 + 16)
  writeFileSync(path, damaged)
  assert.throws(() => recordsOf(path), DamagedFile)
})

test('a hole in what was never durable is a torn tail, even with whole records after it', context => {
  const path = pathIn(context)
  const file = open(path)
  file.append(Buffer.from('durable'))
  file.syncNow()
  const hole = file.append(Buffer.from('torn'))
  for (let n = 0; n < 1000; n += 1) file.append(Buffer.from('whole'))
  file.close()
  const damaged = readFileSync(path)
  damaged.fill(0, hole, hole + 10)
  writeFileSync(path, damaged)
  assert.deepEqual(recordsOf(path), [Buffer.from('durable')])
})

test('many callers of sync share few rounds, and each is served by one that began after its append', async context => {
  const path = pathIn(context)
  const file = open(path)
  const served: Promise<number>[] = []
  const ends: number[] = []
  for (let n = 0; n < 200; n += 1) {
    file.append(numbered(n))
    ends.push(file.size)
    served.push(file.sync().then(() => file.durable))
    if (n % 20 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  const durable = await Promise.all(served)
  for (const [n, end] of ends.entries()) assert.ok((durable[n] ?? 0) >= end)
  assert.ok(new Set(durable).size <= 12, `${new Set(durable).size} rounds`)
  file.close()
})

test('a sync under way survives that the file is rewritten or closed', async context => {
  const path = pathIn(context)
  const file = open(path)
  for (let n = 0; n < 100; n += 1) {
    file.append(numbered(n))
    const early = file.sync()
    await Promise.resolve()
    await Promise.resolve()
    file.append(numbered(n))
    const late = file.sync()
    file.rewrite([Buffer.from('compact')], () => {})
    file.append(numbered(n))
    const after = file.sync()
    await Promise.all([early, late, after])
    assert.equal(file.durable, file.size)
  }
  file.append(Buffer.from('last'))
  const last = file.sync()
  file.close()
  await last
  await assert.rejects(file.sync(), /closed/)
  assert.throws(() => file.append(Buffer.from('late')), /closed/)
  assert.throws(() => file.read(8, 1), /closed/)
  assert.deepEqual(recordsOf(path).at(-1), Buffer.from('last'))
})

test('two writers of one file are noticed at the next append of the first', context => {
  const path = pathIn(context)
  const first = open(path)
  const second = open(path)
  second.append(Buffer.from('mine'))
  assert.throws(() => first.append(Buffer.from('yours')), /only one worker/)
  second.rewrite([Buffer.from('mine')], () => {})
  const third = open(path)
  third.rewrite([Buffer.from('other')], () => {})
  assert.throws(() => second.append(Buffer.from('again')), /only one worker/)
  for (const file of [first, second, third]) file.close()
  assert.deepEqual(recordsOf(path), [Buffer.from('other')])
})

test('SIGKILL at any moment loses nothing that was appended', async context => {
  const path = pathIn(context)
  const random = chance(3)
  let before = 0
  for (let kill = 0; kill < 10; kill += 1) {
    const printed = await runUntilKilled('append', join(path, '..'), 1 + random(250))
    const records = recordsOf(path)
    const last = Number(printed.at(-1))
    assert.ok(records.length === last + 1 || records.length === last + 2, `${records.length} after ${last}`)
    assert.equal(Number(printed[0]), before)
    for (const [n, record] of records.entries()) assert.deepEqual(record, numbered(n))
    before = records.length
  }
})

test('SIGKILL in the middle of a rewrite leaves the old file, and the half of the new one is cleared away', async context => {
  const path = pathIn(context)
  await runUntilKilled('append-rewrite', join(path, '..'), Number.MAX_SAFE_INTEGER)
  assert.ok(existsSync(`${path}.new`))
  assert.deepEqual(recordsOf(path), [Buffer.from('old')])
  assert.deepEqual(readdirSync(join(path, '..')), ['numbers.dat'])
})

test('a rewrite without room for it leaves the file as it was', async context => {
  const path = pathIn(context)
  const folder = join(path, '..')
  const [message] = await runToEnd('rewrite-full', folder, 64)
  assert.equal(message, `no space left to write in ${folder}: free some space`)
  assert.deepEqual(recordsOf(path).map(String), ['kept', 'and more'])
  assert.deepEqual(readdirSync(folder), ['numbers.dat'])
})
