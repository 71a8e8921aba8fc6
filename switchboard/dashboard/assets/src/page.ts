/** What the modules share about the page: its language, its time zone, and the moment something new is in it. */

const NEW = 'content:added'

/** Now, and whenever a part of the page was exchanged; before it is painted, so that nothing flickers. */
export function onContent(look: () => void): void {
  for (const event of ['htmx:afterSwap', 'htmx:oobAfterSwap', 'htmx:afterSettle', NEW]) {
    document.addEventListener(event, look)
  }
  look()
}

/** Tells it for what came past htmx. */
export function contentAdded(): void {
  document.dispatchEvent(new CustomEvent(NEW))
}

export function language(): string {
  return document.documentElement.lang || 'en'
}

/** The zone that the server writes times in, if it says so; else the browser's. */
export function timeZone(): string | undefined {
  return document.documentElement.dataset['zone'] || undefined
}

/** The element, or the one around it, that a click was meant for. */
export function clicked(event: Event, selector: string): HTMLElement | null {
  const hit = event.target instanceof Element ? event.target.closest(selector) : null
  return hit instanceof HTMLElement ? hit : null
}

/** A request that the page made by itself, for a part that had changed: nobody waits for its answer. */
export function isRefresh(event: Event): boolean {
  const detail = (event as CustomEvent<{ requestConfig?: { triggeringEvent?: Event } }>).detail
  return detail?.requestConfig?.triggeringEvent?.type === 'refresh'
}
