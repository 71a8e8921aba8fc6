/** Which words fit a distance in time, and when they cease to. */

export interface Distance {
  readonly count: number
  readonly unit: Intl.RelativeTimeFormatUnit
}

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1]
]

/** The largest unit that is full at least once; below that, seconds. */
export function distance(fromMs: number, toMs: number): Distance {
  const seconds = Math.trunc((toMs - fromMs) / 1_000)
  const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1]
  return { count: Math.trunc(seconds / size), unit }
}

/** "Yesterday" where there is such a word. */
export function timeFormat(language: string): Intl.RelativeTimeFormat {
  return new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
}

export function relativeWords(nowMs: number, thenMs: number, words: Intl.RelativeTimeFormat): string {
  const { count, unit } = distance(nowMs, thenMs)
  // "Now" rather than seconds that jump while one reads.
  if (unit === 'second' && Math.abs(count) < 5) return words.format(0, 'second')
  // Hebrew has words for one and two, to which its data adds the figure: "a minute (1) ago".
  return words.format(count, unit).replace(/ \(\d\)/, '')
}

/** Minutes and seconds, with hours if need be; never below zero. */
export function countdownWords(nowMs: number, thenMs: number): string {
  const seconds = Math.max(0, Math.ceil((thenMs - nowMs) / 1_000))
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60]
  if (seconds >= 3_600) parts.unshift(Math.floor(seconds / 3_600))
  return parts.map(part => String(part).padStart(2, '0')).join(':')
}
