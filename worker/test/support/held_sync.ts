/**
 * Imported before anything that keeps files: lets a test hold back the syncs of one file, as a slow disk would. What is
 * not synced would be lost in a power cut.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

type Sync = (fd: number, done: fs.NoParamCallback) => void

const disk = fs as unknown as { fdatasync: Sync }
const really = disk.fdatasync
const held = new Map<number, (sync: () => void) => void>()

disk.fdatasync = (fd, done) => {
  const sync = (): void => really(fd, done)
  const hold = held.get(fs.fstatSync(fd).ino) ?? (now => now())
  hold(sync)
}
syncBuiltinESMExports()

/** From now on. `reached` resolves when a sync is asked for, which then waits for `release`. */
export function holdSyncs(path: string): { readonly reached: Promise<void>; release(): void } {
  const { ino } = fs.statSync(path)
  const waiting: (() => void)[] = []
  const reached = new Promise<void>(resolve => {
    held.set(ino, sync => {
      waiting.push(sync)
      resolve()
    })
  })
  return {
    reached,
    release() {
      held.delete(ino)
      for (const sync of waiting) sync()
    }
  }
}
