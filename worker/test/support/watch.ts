/** What a stage shows of the worker's doings, in the few words in which tests say what should have happened. */
import assert from 'node:assert/strict'
import { PHONE, type Program, preload, type Stage } from './stage.js'

const LOOK_MS = 25
/** A new process on a machine with much else to do. */
export const START_MS = 60_000
/** Of a lease, this much must be left for a message to be tried at all. */
const LEAST_LEASE_MS = 10_000
/** The pause before the first connection anew is 1 s at most: who has not come back by now does not mean to. */
const AWAY_MS = 2_500

/** The environment of a worker whose timers of up to a minute run so many times as fast; its clocks do not. */
export const timesAsFast = (times: number): Record<string, string> => ({
  ...preload('quick_timers'),
  QUICK: String(times),
  QUICK_BELOW_MS: '60000'
})

/** Scanned and connected, and quick to lose patience. */
export async function linkedImpatient(stage: Stage, times = 4): Promise<Program> {
  const worker = stage.startWorker(timesAsFast(times))
  const { qr } = await stage.event('QR_CODE')
  await stage.control('/scan', { qr, phone: PHONE })
  await stage.event('CONNECTED')
  return worker
}

/** Events but PINGs. One that a killed process told and its successor told again counts once, as it does for the server. */
export function news(stage: Stage, type?: string): Record<string, unknown>[] {
  const numbers = new Set<string>()
  return stage.events(type).filter(({ stream, sequence }) => {
    const number = `${stream}/${sequence}`
    return !numbers.has(number) && numbers.add(number)
  })
}

/** What became of the link, as `TYPE word`. A proxy that fails the same way again, pause after pause, is said once. */
export function story(stage: Stage): string[] {
  const words = news(stage).flatMap(event => {
    const type = String(event['type'])
    const data = event['data'] as Record<string, unknown>
    const word = data['reason'] ?? data['code'] ?? data['status']
    if (type.startsWith('MESSAGE_')) return []
    return type === 'PAIRING_CODE' || word === undefined ? [type] : [`${type} ${word}`]
  })
  return words.filter((word, index) => !(word.startsWith('PROXY_ERROR') && word === words[index - 1]))
}

/** Waits until the story goes like this, with nothing before, between or after. */
export async function storyIs(stage: Stage, expected: readonly string[]): Promise<void> {
  await within(
    START_MS,
    () => story(stage).length >= expected.length,
    () => `${expected}; only ${story(stage)}`
  )
  assert.deepEqual(story(stage), expected)
}

/** Of the account, as WhatsApp sees it. */
export async function account(
  stage: Stage,
  phone = PHONE
): Promise<{ online: boolean; linked: boolean; logins: number; waiting: number } | undefined> {
  const { accounts } = await stage.control('/state')
  return accounts.find((one: { phone: string }) => one.phone === phone)
}

/** How often each request, and each other kind of stanza, came to the simulator. */
export async function seen(stage: Stage, request: string): Promise<number> {
  const { requests } = await stage.control('/state')
  return requests[request] ?? 0
}

/** How often anything was asked of the proxy, by any worker. */
export async function dialled(stage: Stage): Promise<number> {
  return (await stage.control('/proxies/1')).asked.length
}

/** How long after each dial the next one came, ms. */
export async function dialGaps(stage: Stage): Promise<number[]> {
  const times: number[] = (await stage.control('/proxies/1')).asked.map(({ at }: { at: number }) => at)
  return times.slice(1).map((at, index) => at - (times[index] ?? at))
}

/** For what takes longer than a stage is patient by itself. */
export async function within(
  ms: number,
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string)
): Promise<void> {
  const end = Date.now() + ms
  while (!(await condition())) {
    if (Date.now() >= end) assert.fail(`never: ${typeof what === 'string' ? what : what()}`)
    await new Promise(resolve => setTimeout(resolve, LOOK_MS))
  }
}

/**
 * The worker lives and claims, and does not connect: a message that it is handed waits for the link longer than any first
 * pause is, in vain, while nothing is asked of the proxy.
 */
export async function staysAway(stage: Stage, worker: Program, dials: number): Promise<void> {
  const reports = stage.switchboard.of('ack', 'nack').length
  stage.offer('is anybody there?', { leaseUntil: Date.now() + LEAST_LEASE_MS + AWAY_MS })
  const { call, body } = await stage.settled(reports + 1)
  assert.deepEqual([call, body['class'], body['error']], ['nack', 'retryable', 'not_connected'])
  assert.equal(await dialled(stage), dials, 'it connected again')
  assert.equal(worker.process.exitCode, null)
}

/** Ends the worker and starts another with the same files. */
export async function restart(stage: Stage, worker: Program, more: Record<string, string> = {}): Promise<Program> {
  await worker.end('SIGKILL')
  return stage.startWorker(more)
}

/** A stage for one test, taken down after it. */
export const onStage =
  (play: (stage: Stage) => Promise<void>, open: () => Promise<Stage>) => async (): Promise<void> => {
    const stage = await open()
    try {
      await play(stage)
    } finally {
      await stage.close()
    }
  }
