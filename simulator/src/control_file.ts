/** The note that a running simulator leaves in its data folder, so that the command line finds it. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What runs where. It holds no passwords. */
export interface Running {
  readonly whatsapp: number
  readonly control: number
  /** The file for NODE_EXTRA_CA_CERTS. */
  readonly ca: string
  readonly proxies: readonly { readonly n: number; readonly port: number; readonly user: string | null }[]
  readonly pid: number
}

export function writeRunning(dir: string, running: Running): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  writeFileSync(fileOf(dir, '.new'), `${JSON.stringify(running)}\n`, { mode: 0o600 })
  renameSync(fileOf(dir, '.new'), fileOf(dir))
}

export function removeRunning(dir: string): void {
  rmSync(fileOf(dir), { force: true })
}

/** Where the control API of this folder's simulator listens or listened, or null. It may have been killed since. */
export function readControlPort(dir: string): number | null {
  return readNote(dir)?.control ?? null
}

/** Whether the simulator that left the note is still there. Its port alone may belong to another one by now. */
export async function isRunning(dir: string): Promise<boolean> {
  const note = readNote(dir)
  if (note === null) return false
  try {
    const reply = await fetch(`http://127.0.0.1:${note.control}/`, { signal: AbortSignal.timeout(2_000) })
    return (await reply.text()).startsWith(greeting(note.pid))
  } catch {
    return false
  }
}

/** The first words of the control API, by which a simulator is known. */
export function greeting(pid: number): string {
  return `The local WhatsApp, process ${pid}.`
}

function readNote(dir: string): { control: number; pid: number } | null {
  try {
    const { control, pid } = JSON.parse(readFileSync(fileOf(dir), 'utf8')) as Partial<Running>
    return typeof control === 'number' && typeof pid === 'number' ? { control, pid } : null
  } catch {
    // Not there, or not a note of ours: both mean that nothing is known.
    return null
  }
}

function fileOf(dir: string, suffix = ''): string {
  return join(dir, `control.json${suffix}`)
}
