/**
 * Loaded into a worker before anything of its own: timers of up to QUICK_BELOW_MS run QUICK times as fast. Clocks are
 * left alone, since signatures are checked against them.
 */
const factor = Number(process.env['QUICK'] ?? 1)
const below = Number(process.env['QUICK_BELOW_MS'] ?? Number.POSITIVE_INFINITY)

const quick = (ms: number | undefined): number | undefined => (ms !== undefined && ms <= below ? ms / factor : ms)

for (const name of ['setTimeout', 'setInterval'] as const) {
  const slow = globalThis[name] as (work: () => void, ms?: number, ...args: unknown[]) => NodeJS.Timeout
  const faster = (work: () => void, ms?: number, ...args: unknown[]): NodeJS.Timeout => slow(work, quick(ms), ...args)
  Object.defineProperties(faster, Object.getOwnPropertyDescriptors(slow))
  Object.assign(globalThis, { [name]: faster })
}
