/**
 * A stream of events that comes back by itself. The browser's own EventSource tries again after a broken line, but gives
 * up for good after any answer that is not a stream: then we ask why, and open a new one after growing pauses.
 */

import type { Clock } from './clock.js'

const SHORTEST_MS = 1_000
const LONGEST_MS = 30_000

export interface StreamEvents {
  readonly on: Readonly<Record<string, (event: MessageEvent<string>) => void>>
  opened?(): void
  broken?(): void
  /** The server no longer knows who asks. */
  refused?(): void
  /** There is nothing more to come, ever. */
  over?(): void
}

export class Stream {
  readonly #url: string
  readonly #events: StreamEvents
  readonly #clock: Clock
  #source: EventSource | null = null
  #tries = 0
  #lastId = ''
  #cancel: () => void = () => {}

  constructor(url: string, events: StreamEvents, clock: Clock) {
    this.#url = url
    this.#events = events
    this.#clock = clock
  }

  open(): void {
    this.close()
    const source = new EventSource(urlAfter(this.#url, this.#lastId, location.href))
    this.#source = source
    source.onopen = () => {
      this.#tries = 0
      this.#events.opened?.()
    }
    source.onerror = () => {
      this.#events.broken?.()
      if (source.readyState === EventSource.CLOSED) this.#openLater()
    }
    for (const [name, call] of Object.entries(this.#events.on)) {
      source.addEventListener(name, event => {
        this.#lastId = event.lastEventId || this.#lastId
        call(event)
      })
    }
  }

  close(): void {
    this.#cancel()
    this.#source?.close()
    this.#source = null
  }

  #openLater(): void {
    this.close()
    this.#cancel = this.#clock.after(pauseAfter(this.#tries++, Math.random()), () => void this.#ask())
  }

  async #ask(): Promise<void> {
    const asking = new AbortController()
    this.#cancel = () => asking.abort()
    try {
      const answer = await fetch(this.#url, { signal: asking.signal, headers: { Accept: 'text/event-stream' } })
      if (answer.status === 401 || answer.redirected) this.#events.refused?.()
      else if (answer.status === 410) this.#events.over?.()
      else if (isStream(answer)) this.open()
      else this.#openLater()
    } catch {
      if (!asking.signal.aborted) this.#openLater()
    } finally {
      asking.abort()
    }
  }
}

function isStream(answer: Response): boolean {
  return answer.status === 200 && (answer.headers.get('content-type') ?? '').startsWith('text/event-stream')
}

/** Twice as long each time. A fifth is left to chance: a server that comes back must not meet all pages at once. */
export function pauseAfter(tries: number, chance: number): number {
  return Math.min(SHORTEST_MS * 2 ** tries, LONGEST_MS) * (1 - chance / 5)
}

/** A new EventSource can't name the last event in a header, as a returning one does: the address carries it. */
export function urlAfter(url: string, lastId: string, base: string): string {
  if (!lastId) return url
  const full = new URL(url, base)
  full.searchParams.set('after', lastId)
  return full.href
}
