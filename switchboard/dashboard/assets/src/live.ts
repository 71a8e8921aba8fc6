/**
 * Keeps the page true. The server tells in one stream what has changed; the elements that show it (`data-on="topic …"`,
 * `hx-trigger="refresh"`) then fetch themselves through htmx: at most every other second, not under a person's hands,
 * not while nobody looks.
 */

import { browserClock } from './clock.js'
import { Connection } from './connection.js'
import { type Moment, Pace } from './pace.js'
import { isRefresh } from './page.js'
import { tellSignedOut } from './signed_out.js'
import { Stream } from './stream.js'
import { listensTo, outermost, topicsIn } from './topics.js'

const GAP_MS = 2_000
/** A browser allows six connections to a server: a page that nobody looks at must not hold one for long. */
const HIDDEN_MS = 30_000
/** Not everything that a page shows is told when it changes: a look now and then. */
const TICK_MS = 15_000
/** Until what the server could not answer is asked for again. */
const RETRY_MS = 5_000
/** Not a field that can only be read or a row's tick, which stay as they are. */
const EDITED = ':is(input, textarea, select):not([readonly], [data-select], [data-select-all])'

/** An element with an id stays itself when it is exchanged for a new one. */
type Key = string | Element

export function startLive(): void {
  const url = document.body.dataset['live']
  if (!url) return
  const busy = new Set<Key>()
  const pace = new Pace<Key>(
    browserClock,
    GAP_MS,
    key => moment(key, busy),
    key => refresh(key)
  )
  watchMoments(pace, busy)
  watchVisits(openStream(url, pace), pace)
  // What a person just did here, as the answer to it says.
  document.addEventListener('changed', () => wantListeners(pace))
  setInterval(() => wantListeners(pace), TICK_MS)
}

function openStream(url: string, pace: Pace<Key>): Stream {
  const connection = new Connection(browserClock)
  let first = true
  const stream = new Stream(
    url,
    {
      on: { changed: event => wantListeners(pace, topicsIn(event.data)) },
      opened: () => {
        connection.opened()
        if (!first) wantListeners(pace)
        first = false
      },
      broken: () => connection.broken(),
      refused: tellSignedOut,
      over: () => connection.opened() // there is nothing to miss
    },
    browserClock
  )
  stream.open()
  return stream
}

/** Those that listen to what has changed; all of them after a gap, of which nobody knows what changed in it. */
function wantListeners(pace: Pace<Key>, changed?: ReadonlySet<string>): void {
  const all = [...document.querySelectorAll<HTMLElement>('[data-on]')]
  for (const element of outermost(all.filter(each => !changed || listensTo(each.dataset['on'], changed))))
    pace.want(keyOf(element))
}

function keyOf(element: Element): Key {
  return element.id || element
}

function elementOf(key: Key): Element | null {
  const element = typeof key === 'string' ? document.getElementById(key) : key
  return element?.isConnected ? element : null
}

function moment(key: Key, busy: ReadonlySet<Key>): Moment {
  const element = elementOf(key)
  if (!element) return 'never'
  return document.hidden || busy.has(key) || isInHand(element) ? 'later' : 'now'
}

/** Someone writes in it, or answers a question in it. */
function isInHand(element: Element): boolean {
  const active = document.activeElement
  return (active?.matches(EDITED) && element.contains(active)) || element.querySelector('dialog[open]') !== null
}

function refresh(key: Key): void {
  // It does not bubble: an element around it listens to the same event, and is not meant.
  elementOf(key)?.dispatchEvent(new CustomEvent('refresh'))
}

/** Whenever a bad moment ends, what was put off is looked at again. */
function watchMoments(pace: Pace<Key>, busy: Set<Key>): void {
  const requester = (event: Event) => keyOf((event as CustomEvent<{ elt: Element }>).detail.elt)
  document.addEventListener('htmx:beforeSend', event => busy.add(requester(event)))
  document.addEventListener('htmx:afterRequest', event => {
    busy.delete(requester(event))
    pace.look()
  })
  watchFailures(pace, requester)
  document.addEventListener('focusout', () => setTimeout(() => pace.look()))
  document.addEventListener('close', () => pace.look(), { capture: true })
}

/** What nobody asked for fails in silence, and once more later. A server that is away is the stream's to notice. */
function watchFailures(pace: Pace<Key>, requester: (event: Event) => Key): void {
  document.addEventListener('htmx:beforeSwap', event => {
    const { detail } = event as CustomEvent<{ isError: boolean; shouldSwap: boolean }>
    if (isRefresh(event) && detail.isError) detail.shouldSwap = false
  })
  document.addEventListener('htmx:responseError', event => {
    const { status } = (event as CustomEvent<{ xhr: XMLHttpRequest }>).detail.xhr
    if (isRefresh(event) && status >= 500) browserClock.after(RETRY_MS, () => pace.want(requester(event)))
  })
}

function watchVisits(stream: Stream, pace: Pace<Key>): void {
  let closed = false
  let cancel = () => {}
  const leave = () => {
    closed = true
    stream.close()
  }
  const visit = () => {
    cancel()
    if (closed) stream.open()
    closed = false
    pace.look()
  }
  const look = () => {
    if (document.hidden) cancel = browserClock.after(HIDDEN_MS, leave)
    else visit()
  }
  document.addEventListener('visibilitychange', look)
  look()
  // A page that is kept for the way back, and taken out again.
  addEventListener('pagehide', leave)
  addEventListener('pageshow', event => {
    if (event.persisted) visit()
  })
}
