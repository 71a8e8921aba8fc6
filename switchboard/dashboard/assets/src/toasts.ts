/** Words in the corner (`#toasts`): they leave by themselves, unless someone reads them or they are to stay. */

import { clicked, isRefresh } from './page.js'

const SHOWN_MS = 6_000
const READ_MS = 2_000
const FADING_MS = 300

export function startToasts(): void {
  const region = document.getElementById('toasts')
  if (!region) return
  const seen = new WeakSet<Element>()
  const look = () => {
    for (const toast of toastsIn(region).filter(each => !seen.has(each))) {
      seen.add(toast)
      if (!('stay' in toast.dataset)) dismissAfter(SHOWN_MS, toast)
    }
  }
  region.addEventListener('click', event => {
    const toast = clicked(event, 'button[data-close]')?.closest<HTMLElement>('.toast')
    if (toast) dismiss(toast)
  })
  new MutationObserver(look).observe(region, { childList: true })
  look()
  tellTrouble(region)
}

function toastsIn(region: HTMLElement): HTMLElement[] {
  return [...region.querySelectorAll<HTMLElement>('.toast')]
}

function dismissAfter(ms: number, toast: HTMLElement): void {
  setTimeout(() => {
    if (toast.matches(':hover, :focus-within')) dismissAfter(READ_MS, toast)
    else dismiss(toast)
  }, ms)
}

function dismiss(toast: HTMLElement): void {
  toast.dataset['leaving'] = ''
  setTimeout(() => toast.remove(), FADING_MS)
}

/** What a person did and the server did not answer. What the page asked by itself is told by `#connection`. */
function tellTrouble(region: HTMLElement): void {
  const { awayText, errorText } = document.body.dataset
  document.addEventListener('htmx:sendError', event => {
    if (!isRefresh(event)) show(region, awayText)
  })
  document.addEventListener('htmx:responseError', event => {
    const { xhr } = (event as CustomEvent<{ xhr: XMLHttpRequest }>).detail
    if (!isRefresh(event) && xhr.status !== 401 && !xhr.responseText.trim()) show(region, errorText ?? awayText)
  })
}

/** Once, however often it is meant. */
function show(region: HTMLElement, text: string | undefined): void {
  if (!text || toastsIn(region).some(toast => toast.querySelector('p')?.textContent === text)) return
  const toast = document.createElement('div')
  toast.className = 'toast tone-bad'
  const words = document.createElement('p')
  words.textContent = text
  const close = document.createElement('button')
  close.type = 'button'
  close.className = 'icon'
  close.dataset['close'] = ''
  if (region.dataset['closeLabel']) close.setAttribute('aria-label', region.dataset['closeLabel'])
  close.textContent = '×'
  toast.append(words, close)
  region.prepend(toast)
}
