import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { AuthStore } from '../src/auth_store.js'
import { batch, chance, runToEnd, runUntilKilled, temporaryFolder, withoutFullDisk } from './support/disk.js'

type Model = Map<string, Map<string, unknown>>

/** A plain Map that is treated as the store should behave. */
function apply(
  model: Model,
  changes: Record<string, Record<string, unknown>>,
  limits: Record<string, number> = {}
): void {
  for (const [type, values] of Object.entries(changes)) {
    const ids = model.get(type) ?? new Map<string, unknown>()
    model.set(type, ids)
    for (const [id, value] of Object.entries(values)) {
      ids.delete(id)
      if (value !== null && value !== undefined) ids.set(id, value)
    }
    for (const id of [...ids.keys()].slice(0, Math.max(0, ids.size - (limits[type] ?? ids.size)))) ids.delete(id)
  }
}

function assertSame(store: AuthStore, model: Model, what: string): void {
  for (const [type, ids] of model) {
    assert.deepEqual(store.list(type), [...ids.keys()], `${what}: ids of ${type}`)
    assert.deepEqual(store.get(type, [...ids.keys(), 'unknown']), Object.fromEntries(ids), `${what}: values of ${type}`)
  }
}

function after(batches: number): Model {
  const model: Model = new Map()
  for (let n = 1; n <= batches; n += 1) apply(model, batch(n))
  return model
}

test('credentials and keys come back after a restart, bytes as Buffers', async context => {
  const folder = temporaryFolder(context)
  const store = AuthStore.open(folder)
  assert.equal(store.readCreds(), undefined)
  const inside = new Uint8Array([9, 1, 2, 9]).subarray(1, 3)
  await store.writeCreds({ noiseKey: { private: Buffer.from('priv'), public: inside }, registered: false, me: null })
  await store.set({
    session: { a: Buffer.from([0, 255]), b: { list: [Buffer.alloc(0), 'ש', 1.5] }, __proto__: 1 },
    creds: { creds: 'not the credentials' }
  })
  for (const opened of [store, AuthStore.open(folder)]) {
    assert.deepEqual(opened.readCreds(), {
      noiseKey: { private: Buffer.from('priv'), public: Buffer.from([1, 2]) },
      registered: false,
      me: null
    })
    assert.deepEqual(opened.get('session', ['a', 'b', 'c']), {
      a: Buffer.from([0, 255]),
      b: { list: [Buffer.alloc(0), 'ש', 1.5] }
    })
    assert.deepEqual(opened.get('creds', ['creds']), { creds: 'not the credentials' })
    opened.close()
  }
})

test('what get hands out is a copy: changing it changes nothing', async context => {
  const store = AuthStore.open(temporaryFolder(context))
  await store.set({ session: { a: { n: 1 } } })
  Object.assign(store.get('session', ['a'])['a'] ?? {}, { n: 2 })
  assert.deepEqual(store.get('session', ['a']), { a: { n: 1 } })
  store.close()
})

test('a change is seen before its promise resolves, and null and undefined delete', async context => {
  const store = AuthStore.open(temporaryFolder(context))
  const first = store.set({ session: { a: 1, b: 2, c: 3 } })
  assert.deepEqual(store.get('session', ['a', 'b', 'c']), { a: 1, b: 2, c: 3 })
  const second = store.set({ session: { a: null, b: undefined } })
  assert.deepEqual(store.list('session'), ['c'])
  await Promise.all([first, second])
  store.close()
})

test('a value that can not be stored rejects and has no effect, nor has the rest of its change', async context => {
  const store = AuthStore.open(temporaryFolder(context))
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  await assert.rejects(store.set({ session: { a: 1, b: circle } }))
  await assert.rejects(store.set({ session: { a: 1, b: () => 1 } }), TypeError)
  assert.deepEqual(store.list('session'), [])
  store.close()
})

test('a file cut at any byte opens with whole changes only', async context => {
  const folder = temporaryFolder(context)
  const path = join(folder, 'auth.dat')
  const store = AuthStore.open(folder)
  const models: { end: number; model: Model }[] = [{ end: 0, model: new Map() }]
  for (let n = 1; n <= 5; n += 1) {
    const changes = { x: { a: n, [`b${n}`]: Buffer.from([n]) }, y: { a: n, [`b${n - 1}`]: null } }
    await store.set(changes)
    const model: Model = new Map([...(models.at(-1)?.model ?? [])].map(([type, ids]) => [type, new Map(ids)]))
    apply(model, changes)
    models.push({ end: statSync(path).size, model })
  }
  store.close()
  const whole = readFileSync(path)
  for (let cut = 0; cut <= whole.length; cut += 1) {
    writeFileSync(path, whole.subarray(0, cut))
    const opened = AuthStore.open(folder)
    assertSame(opened, models.findLast(({ end }) => end <= cut)?.model ?? new Map(), `cut at ${cut}`)
    opened.close()
  }
})

test('any sequence of changes, restarts and compactions equals a plain Map', async context => {
  for (const seed of [1, 2, 3, 4]) {
    const folder = temporaryFolder(context)
    const path = join(folder, 'auth.dat')
    const random = chance(seed)
    const limits = { ring: 7 }
    const model: Model = new Map()
    let store = AuthStore.open(folder)
    let compactions = 0
    for (let step = 0; step < 900; step += 1) {
      store.keepNewest('ring', limits.ring)
      const changes: Record<string, Record<string, unknown>> = {}
      for (let count = random(4); count >= 0; count -= 1) {
        const type = ['session', 'pre-key', 'ring'][random(3)] ?? ''
        const value = random(5) === 0 ? null : { step, bytes: Buffer.alloc(random(9000), random(256)) }
        changes[type] = { ...changes[type], [`id-${random(25)}`]: value }
      }
      const size = statSync(path).size
      const durable = store.set(changes)
      if (statSync(path).size < size) compactions += 1
      apply(model, changes, limits)
      if (random(4) === 0) await durable
      if (random(30) === 0) {
        store.close()
        store = AuthStore.open(folder)
      }
      if (random(20) === 0) assertSame(store, model, `seed ${seed}, step ${step}`)
      assert.ok(statSync(path).size < 4 * 1024 * 1024, 'the file stays small')
    }
    store.close()
    store = AuthStore.open(folder)
    assertSame(store, model, `seed ${seed}, end`)
    store.close()
    assert.ok(compactions >= 3, `${compactions} compactions`)
  }
})

test('a bounded type keeps the ids written last, in order, also within one change and after a restart', async context => {
  const folder = temporaryFolder(context)
  let store = AuthStore.open(folder)
  store.keepNewest('sent', 3)
  await store.set({ sent: { a: 1, b: 1, c: 1 } })
  await store.set({ sent: { a: 2 }, other: { x: 1 } })
  assert.deepEqual(store.list('sent'), ['b', 'c', 'a'])
  await store.set({ sent: { d: 1 } })
  store.close()
  store = AuthStore.open(folder)
  store.keepNewest('sent', 3)
  assert.deepEqual(store.list('sent'), ['c', 'a', 'd'])
  await store.set({ sent: { e: 1, f: 1, g: 1, h: 1, i: 1 } })
  assert.deepEqual(store.list('sent'), ['g', 'h', 'i'])
  assert.deepEqual(store.list('other'), ['x'])
  store.close()
})

test('SIGKILL at any moment leaves all that was set and no half of a change', async context => {
  const folder = temporaryFolder(context)
  const random = chance(5)
  let reached = 0
  for (let kill = 0; kill < 12; kill += 1) {
    const printed = await runUntilKilled('auth', folder, 1 + random(700))
    assert.equal(Number(printed[0]), reached + 1)
    const last = Number(printed.at(-1))
    const store = AuthStore.open(folder)
    reached = Number(store.get('counter', ['last'])['last'])
    assert.ok(reached === last || reached === last + 1, `${reached} after ${last} was printed`)
    assertSame(store, after(reached), `kill ${kill}`)
    store.close()
  }
})

test('a full disk rejects the change, leaves the store as it was, and says what to do', async context => {
  const folder = temporaryFolder(context)
  const [line = ''] = await runToEnd('auth-full', folder, 600)
  const { last, message, again, seen } = JSON.parse(line)
  assert.equal(message, `no space left to write in ${folder}: free some space`)
  assert.equal(again, message)
  assert.deepEqual(seen, { last, small: last + 1 })
  assert.ok(last > 10)
  const model = after(last)
  apply(model, { counter: { small: last + 1 } })
  const store = AuthStore.open(folder)
  assertSame(store, model, 'after the full disk')
  await store.set(batch(last + 1))
  store.close()
})

test('no room to compact is no harm: the store goes on and compacts later', {
  skip: withoutFullDisk()
}, async context => {
  const folder = temporaryFolder(context)
  const path = join(folder, 'auth.dat')
  const store = AuthStore.open(folder)
  const model: Model = new Map()
  const change = async (n: number) => {
    const changes = { session: { [`s${n % 5}`]: { n, key: Buffer.alloc(60_000, n) } } }
    await store.set(changes)
    apply(model, changes)
    assert.ok(n < 500, 'it should have compacted by now')
  }
  // The copy is written to a disk that is full for ever.
  symlinkSync('/dev/full', `${path}.new`)
  let n = 0
  while (readdirSync(folder).length > 1) await change(++n)
  const size = statSync(path).size
  assertSame(store, model, 'after the compaction that failed')
  while (statSync(path).size >= size) await change(++n)
  assertSame(store, model, 'after the one that worked')
  store.close()
  const opened = AuthStore.open(folder)
  assertSame(opened, model, 'after a restart')
  opened.close()
})

test('an error about a value that rotted does not quote it', async context => {
  const folder = temporaryFolder(context)
  const path = join(folder, 'auth.dat')
  const store = AuthStore.open(folder)
  await store.set({ session: { a: 'a secret' } })
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill('}', bytes.indexOf('secret'), bytes.length))
  assert.throws(
    () => store.get('session', ['a']),
    (error: Error) => error.message.includes('check the disk') && !error.message.includes('}')
  )
  store.close()
})

test('ten thousand sessions of 3 KB stay on the disk, not in memory', async context => {
  const folder = temporaryFolder(context)
  const [line = ''] = await runToEnd('auth-heap', folder)
  const { written, read, sessions } = JSON.parse(line)
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1)
  const size = statSync(join(folder, 'auth.dat')).size
  context.diagnostic(
    `file ${megabytes(size)} MB; memory after writing ${megabytes(written)}, reading ${megabytes(read)}`
  )
  assert.equal(sessions, 10_000)
  assert.ok(size > 29e6)
  assert.ok(written < 8e6 && read < 8e6)
})
