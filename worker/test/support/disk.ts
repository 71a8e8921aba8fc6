/** What the tests of the files share: folders that vanish, chance that can be repeated, and programs that are killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./disk_program.js', import.meta.url))

export function temporaryFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-disk-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Why a test that needs a disk which is always full has to be skipped, if it has to. */
export function withoutFullDisk(): string | false {
  return existsSync('/dev/full') ? false : 'this system has no /dev/full'
}

/** Whole numbers below `limit`, the same ones for the same seed (mulberry32). */
export function chance(seed: number): (limit: number) => number {
  let state = seed
  return limit => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}

/** Record number `n` of the append program. */
export function numbered(n: number): Buffer {
  const record = Buffer.alloc(8 + (n % 300), n % 256)
  record.writeDoubleLE(n)
  return record
}

/** What batch number `n` of the auth program sets: three types at once, with something deleted. */
export function batch(n: number): Record<string, Record<string, unknown>> {
  return {
    session: { [`s${n % 40}`]: { n, key: Buffer.alloc(3000 + (n % 7) * 1000, n % 251) } },
    'pre-key': { [`p${n}`]: { n }, [`p${n - 20}`]: null },
    counter: { last: n }
  }
}

/** Runs a part of `disk_program.ts` and kills it once it has printed `lines` lines. Returns all that it printed. */
export function runUntilKilled(part: string, folder: string, lines: number): Promise<string[]> {
  return printed(spawn(process.execPath, [PROGRAM, part, folder]), lines)
}

/** Runs a part of `disk_program.ts` to its end. No file can grow beyond `maxBlocks` blocks of 512 bytes. */
export function runToEnd(
  part: string,
  folder: string,
  maxBlocks: number | 'unlimited' = 'unlimited'
): Promise<string[]> {
  const command = 'ulimit -f "$1"; shift; exec "$@"'
  const program = [process.execPath, '--expose-gc', PROGRAM, part, folder]
  return printed(spawn('/bin/sh', ['-c', command, 'sh', String(maxBlocks), ...program]), Number.POSITIVE_INFINITY)
}

function printed(child: ChildProcess, killAfter: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let output = ''
    let errors = ''
    let count = 0
    child.stderr?.on('data', (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      for (const byte of chunk) if (byte === 10) count += 1
      if (count >= killAfter) child.kill('SIGKILL')
    })
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const asExpected = killAfter === Number.POSITIVE_INFINITY ? code === 0 : signal === 'SIGKILL'
      // A line without its end was being printed when the kill came: it does not count.
      if (asExpected) resolve(output.split('\n').slice(0, -1))
      else reject(new Error(`the program ended with ${code ?? signal}: ${errors}`))
    })
  })
}
