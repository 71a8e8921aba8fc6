/** An hour in the life of a linked worker that has nothing to do: it must not grow. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PHONE, type Program, preload, Stage } from './support/stage.js'

/** An hour in 18 s. */
const FASTER = 200
const QUICK = { ...preload('quick_timers', 'scales'), QUICK: String(FASTER) }
const PINGS_A_MINUTE = 2
const NOTHING = { status: 200, body: { message: null } }
const MOST_GROWTH = 2 * 1024 * 1024

test('a linked worker with nothing to do does not grow between its tenth minute and its hour', async t => {
  const stage = await Stage.open()
  t.after(() => stage.close())
  const { switchboard } = stage
  switchboard.way = ({ call }) => (call === 'claim' ? NOTHING : undefined)
  const worker = stage.startWorker(QUICK)
  const { qr } = await stage.event('QR_CODE')
  await stage.control('/scan', { qr, phone: PHONE, name: 'Dana' })
  await stage.event('CONNECTED')
  const minutes = (): number => stage.events('PING').length / PINGS_A_MINUTE
  await stage.until(() => minutes() >= 10, 'ten minutes')
  const before = await weightOf(stage, worker)
  await stage.until(() => minutes() >= 60, 'an hour')
  const growth = (await weightOf(stage, worker)) - before
  t.diagnostic(`${before} bytes after ten minutes, ${growth} more after an hour`)
  const { requests } = await stage.control('/state')
  const [pings, presences] = [requests['w:p:get:ping'], requests['presence:available:-']]
  t.diagnostic(`${switchboard.of('claim').length} claims, ${pings} pings to WhatsApp, ${presences} presences`)
  assert.ok(pings > 100 && presences > 90, 'that was no hour')
  assert.ok(growth < MOST_GROWTH, `it grew by ${growth} bytes`)
  assert.equal(stage.events('DISCONNECTED').length, 0)
})

/** Without what is only waiting to be thrown away. */
async function weightOf(stage: Stage, worker: Program): Promise<number> {
  const known = worker.out.length
  worker.process.kill('SIGUSR2')
  await stage.until(() => worker.out.slice(known).includes('\n'), 'it tells its weight')
  return Number(worker.out.slice(known))
}
