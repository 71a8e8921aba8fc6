/** The worker's start and end: reads the settings, puts the parts together, and takes them down in order. */
import './silent_console.js'
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { AuthStore } from './auth_store.js'
import { connect, forgetHalfLink, isLinked } from './baileys.js'
import { systemClock as clock } from './clock.js'
import { Inbox } from './inbox.js'
import { Journal } from './journal.js'
import { KeepAlive } from './keep_alive.js'
import { WhatsAppLink } from './link.js'
import { Log, whatFailed } from './log.js'
import { Outbox } from './outbox.js'
import { useProxy } from './proxy.js'
import { Removed, Server } from './server.js'
import { BAD_SETTINGS, forgetSettings, readSettings, type Settings, SettingsError } from './settings.js'
import { StorageError } from './storage_errors.js'
import { Teller } from './teller.js'

/** The disk or a file on it can't be used (EX_IOERR). A restart may help, once there is space again. */
const BAD_STORAGE = 74
const CRASHED = 70
const DRAIN_MS = 2_000
const CROWDED_LOOK_MS = 200

const log = new Log()

function settingsOrExit(): Settings {
  try {
    const settings = readSettings(process.env)
    forgetSettings(process.env)
    return settings
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(BAD_SETTINGS)
  }
}

/** At once: with a disk that takes nothing any more, going on would use keys twice and lose what people wrote. */
function storageFailed(error: unknown): never {
  log.error('storage_failed', whatFailed(error))
  if (error instanceof Error && /^(StorageError|DamagedFile|JournalFull)$/.test(error.name)) {
    process.stderr.write(`${error.message}\n`) // our own words, with what to do
  }
  process.exit(BAD_STORAGE)
}

function openFolder(folder: string): { store: AuthStore; journal: Journal } {
  try {
    makeFolder(folder)
    return { store: AuthStore.open(folder), journal: Journal.open(folder) }
  } catch (error) {
    return storageFailed(error)
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw StorageError.from(error, folder)
  }
}

async function main(): Promise<void> {
  const settings = settingsOrExit()
  const { store, journal } = openFolder(settings.folder)
  const server = new Server(settings, { instance: randomBytes(12).toString('hex') })
  const inbox = new Inbox(store, journal, storageFailed)
  const agent = useProxy(settings.proxy)
  const { deviceName } = settings

  const link = new WhatsAppLink({
    dial: hooks =>
      connect({ store, inbox, agent, deviceName, online: settings.keepAlive, hooks, broken: storageFailed }),
    isLinked: () => isLinked(store),
    forgetHalfLink: () => forgetHalfLink(store, storageFailed),
    journal,
    deviceName,
    log,
    broken: storageFailed,
    clock
  })
  const teller = new Teller(server, journal, { clock, log })
  const outbox = new Outbox({ server, journal, teller, link, clock, log })
  const keepAlive = new KeepAlive({ server, link, clock, log, presence: settings.keepAlive })

  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort())

  log.info('worker_started', { session: settings.sessionId })
  const parts = [outbox.run(stop.signal), teller.run(), keepAlive.run(stop.signal)]
  const ended = new Promise((resolve, reject) => {
    stop.signal.addEventListener('abort', resolve)
    connected(link, journal, stop.signal).catch(reject)
  })
  try {
    await Promise.race([ended, ...parts])
  } catch (error) {
    if (!(error instanceof Removed)) throw error
    log.info('worker_removed', { session: settings.sessionId })
  }
  stop.abort()
  await parts[0]?.catch(() => undefined)
  await link.close()
  const left = await teller.drain(clock.now() + DRAIN_MS)
  log.info('worker_stopped', { session: settings.sessionId, count: left })
}

/** Whatever happens on the link must fit into the journal, so the server hears first what waits in there. */
async function connected(link: WhatsAppLink, journal: Journal, stop: AbortSignal): Promise<void> {
  if (journal.isCrowded) log.warn('journal_crowded', { count: journal.length })
  while (journal.isCrowded && !stop.aborted) await clock.pause(CROWDED_LOOK_MS, stop)
  if (!stop.aborted) await link.start()
}

/** The library leaves promises alone when a connection ends under it. They are noted, and nothing else is wrong. */
process.on('unhandledRejection', error => log.warn('unhandled_rejection', whatFailed(error)))
process.on('uncaughtException', error => {
  log.error('crashed', whatFailed(error))
  process.exit(CRASHED)
})

main().then(
  () => process.exit(0),
  error => {
    log.error('crashed', whatFailed(error))
    process.exit(CRASHED)
  }
)
