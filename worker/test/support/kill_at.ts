/**
 * Loaded into a worker before anything of its own: counts what it does to its files, from the first write that contains
 * KILL_FROM on, and kills it in the middle of number KILL_AT. A write is then half done.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

type Deed = (...args: unknown[]) => unknown

const KILL_AT = Number(process.env['KILL_AT'])
const KILL_FROM = process.env['KILL_FROM'] ?? ''
const NAMES = [
  'writeSync',
  'fdatasync',
  'fdatasyncSync',
  'fsyncSync',
  'renameSync',
  'ftruncateSync',
  'openSync'
] as const
const deeds = fs as unknown as Record<(typeof NAMES)[number], Deed>
let counts = KILL_FROM === ''
let count = 0

for (const name of NAMES) {
  const really = deeds[name]
  deeds[name] = (...args) => {
    const [, bytes] = args
    counts ||= bytes instanceof Uint8Array && Buffer.from(bytes).includes(KILL_FROM)
    if (counts) count += 1
    if (count === KILL_AT) {
      if (name === 'writeSync') writeHalf(args, really)
      process.kill(process.pid, 'SIGKILL')
    }
    return really(...args)
  }
}
syncBuiltinESMExports()

function writeHalf([fd, bytes, offset, length, at]: unknown[], write: Deed): void {
  if (bytes instanceof Uint8Array) write(fd, bytes, offset, Math.ceil(Number(length) / 2), at)
}
