/** The programs that the tests of the files kill, starve of space, or weigh. Each prints a line for what it has done. */
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { AppendFile } from '../../src/append_file.js'
import { AuthStore } from '../../src/auth_store.js'
import { Journal } from '../../src/journal.js'
import { batch, numbered } from './disk.js'

const [, , part = '', folder = ''] = process.argv

/** Not `process.stdout`: what is printed must be out before the next thing is done. */
function print(line: unknown): void {
  writeSync(1, `${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const parts: Record<string, () => Promise<void> | void> = {
  /** Appends numbers with padding, for ever; syncs and rewrites now and then. */
  async append() {
    const records: Buffer[] = []
    const file = AppendFile.open(join(folder, 'numbers.dat'), bytes => records.push(Buffer.from(bytes)))
    for (let n = records.length; ; n += 1) {
      const record = numbered(n)
      file.append(record)
      records.push(record)
      print(String(n))
      if (n % 5 === 0) await file.sync()
      if (n % 50 === 0) file.rewrite(records, () => {})
    }
  },

  /** Is killed by its own hand while half of a new file is written. */
  'append-rewrite'() {
    const file = AppendFile.open(join(folder, 'numbers.dat'), () => {})
    file.append(Buffer.from('old'))
    file.rewrite(
      (function* () {
        yield Buffer.from('new')
        print('half')
        process.kill(process.pid, 'SIGKILL')
      })(),
      () => {}
    )
  },

  async auth() {
    const store = AuthStore.open(folder)
    const last = store.get('counter', ['last'])['last']
    for (let n = typeof last === 'number' ? last + 1 : 1; ; n += 1) {
      const durable = store.set(batch(n))
      print(String(n))
      // Many changes share a sync, as they do when messages pour in.
      if (n % 8 === 0) await durable
    }
  },

  async 'auth-full'() {
    const store = AuthStore.open(folder)
    for (let n = 1; ; n += 1) {
      try {
        await store.set(batch(n))
      } catch (error) {
        const again = await store.set(batch(n)).catch(messageOf)
        // What is small enough to fit still does.
        await store.set({ counter: { small: n } })
        return print({ last: n - 1, message: messageOf(error), again, seen: store.get('counter', ['last', 'small']) })
      }
    }
  },

  'rewrite-full'() {
    const file = AppendFile.open(join(folder, 'numbers.dat'), () => {})
    file.append(Buffer.from('kept'))
    try {
      file.rewrite([Buffer.alloc(1 << 20)], () => {})
    } catch (error) {
      print(messageOf(error))
    }
    file.append(Buffer.from('and more'))
  },

  async 'auth-heap'() {
    const weigh = () => {
      globalThis.gc?.()
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    const before = weigh()
    const store = AuthStore.open(folder)
    for (let n = 0; n < 10_000; n += 1) {
      const key = Buffer.alloc(2200, n % 251)
      const durable = store.set({ session: { [`9725${n}.0`]: { n, key } } })
      if (n % 500 === 0) await durable
    }
    await store.set({})
    const written = weigh() - before
    store.close()
    const opened = AuthStore.open(folder)
    for (const id of opened.list('session')) opened.get('session', [id])
    print({ written, read: weigh() - before, sessions: opened.list('session').length })
    opened.close()
  },

  async journal() {
    const journal = Journal.open(folder)
    const oldest = journal.next()
    print(`stream ${journal.stream} waiting ${journal.length} oldest ${oldest?.sequence ?? 0}`)
    for (;;) {
      const added = journal.add({ kind: 'event', type: 'CONNECTED', timestamp: 1, data: { pad: 'x'.repeat(900) } })
      print(`added ${added}`)
      await setImmediate()
      for (let entry = journal.next(); entry && journal.length > 3; entry = journal.next()) {
        print(`telling ${entry.sequence}`)
        journal.told(entry)
        print(`told ${entry.sequence}`)
      }
    }
  },

  'journal-full'() {
    const journal = Journal.open(folder)
    let added = 0
    try {
      for (;;) {
        journal.add({ kind: 'event', type: 'CONNECTED', timestamp: 1, data: { n: added, pad: 'x'.repeat(200) } })
        added += 1
      }
    } catch (error) {
      print({ added, message: messageOf(error), length: journal.length })
    }
  }
}

await parts[part]?.()
