/** Keeps `<time data-relative>` ("3 minutes ago") and `<span data-countdown>` (mm:ss) current, by one timer. */

import { language, onContent } from './page.js'
import { countdownWords, relativeWords, timeFormat } from './time_words.js'

const SECOND_MS = 1_000

export function startTimes(): void {
  const words = timeFormat(language())
  onContent(() => write(words))
  setInterval(() => write(words), SECOND_MS)
}

function write(words: Intl.RelativeTimeFormat): void {
  if (document.hidden) return
  const now = Date.now()
  for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-relative]')) {
    const then = Date.parse(time.dateTime)
    if (Number.isNaN(then)) continue
    // What the server wrote is the exact time: it stays within reach.
    if (!time.title) time.title = time.textContent?.trim() ?? ''
    put(time, relativeWords(now, then, words))
  }
  for (const span of document.querySelectorAll<HTMLElement>('[data-countdown]')) {
    const end = Date.parse(span.dataset['countdown'] ?? '')
    if (Number.isNaN(end)) continue
    put(span, countdownWords(now, end))
    span.toggleAttribute('data-over', now >= end)
  }
}

function put(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text
}
