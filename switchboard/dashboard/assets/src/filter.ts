/**
 * Finding rows of a page that is all there: `[data-filter="#id"]` holds a search field, and perhaps a tick box for
 * `[data-changed]` rows only. Rows (`[data-filter-row]`) that do not match hide, and groups without any left, too.
 */

import { matches } from './log_rows.js'
import { clicked } from './page.js'

export function startFilter(): void {
  document.addEventListener('input', event => {
    const filter = clicked(event, '[data-filter]')
    const place = filter?.dataset['filter'] ? document.querySelector(filter.dataset['filter']) : null
    if (filter && place) apply(filter, place)
  })
}

function apply(filter: HTMLElement, place: Element): void {
  const wanted = filter.querySelector<HTMLInputElement>('input[type="search"]')?.value.trim() ?? ''
  const changed = filter.querySelector<HTMLInputElement>('input[type="checkbox"]')?.checked ?? false
  for (const row of place.querySelectorAll<HTMLElement>('[data-filter-row]')) {
    row.hidden = !matches(row.textContent ?? '', wanted) || (changed && !('changed' in row.dataset))
  }
  for (const group of place.querySelectorAll<HTMLElement>('[data-filter-group]')) group.hidden = !left(group)
  const none = place.querySelector<HTMLElement>('[data-filter-none]')
  if (none) none.hidden = left(place)
}

function left(place: Element): boolean {
  return place.querySelector('[data-filter-row]:not([hidden])') !== null
}
