/** The worker's side towards the server, put together with a real journal and a real server, and a clock of our own. */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Journal } from '../../src/journal.js'
import { Log } from '../../src/log.js'
import { Outbox } from '../../src/outbox.js'
import { Server } from '../../src/server.js'
import { Teller } from '../../src/teller.js'
import type { Report } from '../../src/types.js'
import { TestLink } from './link.js'
import { Switchboard } from './switchboard.js'
import { TestClock } from './time.js'

export class Desk {
  readonly switchboard: Switchboard
  readonly clock = new TestClock()
  readonly link = new TestLink()
  readonly folder = mkdtempSync(join(tmpdir(), 'switchboard-desk-'))
  readonly lines: Record<string, unknown>[] = []
  readonly log = new Log(line => this.lines.push(JSON.parse(line)))
  readonly stop = new AbortController()
  readonly server: Server
  journal = Journal.open(this.folder)
  #running: Promise<unknown>[] = []

  private constructor(switchboard: Switchboard) {
    this.switchboard = switchboard
    this.server = new Server(switchboard)
  }

  static async open(): Promise<Desk> {
    return new Desk(await Switchboard.start())
  }

  get events(): unknown[] {
    return this.lines.map(({ event }) => event)
  }

  /** As a new process would find it. */
  reopenJournal(): void {
    this.journal.close()
    this.journal = Journal.open(this.folder)
  }

  /** A teller that runs. What it throws is the test's to see, or else the closing's. */
  teller(): { teller: Teller; running: Promise<void> } {
    const teller = new Teller(this.server, this.journal, this)
    const running = teller.run()
    this.#running.push(
      running.catch(() => undefined),
      this.#drained(teller)
    )
    return { teller, running }
  }

  outbox(teller: Teller): Promise<void> {
    const { server, journal, link, clock, log } = this
    const running = new Outbox({ server, journal, teller, link, clock, log, graceMs: 3_000 }).run(this.stop.signal)
    this.#running.push(running.catch(() => undefined))
    return running
  }

  async close(): Promise<void> {
    this.stop.abort()
    await Promise.all(this.#running)
    this.server.close()
    await this.switchboard.away()
    this.journal.close()
    rmSync(this.folder, { recursive: true })
    assert.deepEqual(this.switchboard.faults, [])
  }

  #drained(teller: Teller): Promise<unknown> {
    return new Promise(resolve => {
      this.stop.signal.addEventListener('abort', () => resolve(teller.drain(0)))
    })
  }
}

export function statusChange(timestamp: number): Report {
  return { kind: 'event', type: 'STATUS_CHANGE', timestamp, data: { status: 'connected' } }
}
