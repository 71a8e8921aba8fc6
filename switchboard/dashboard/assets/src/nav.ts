/** The menu on a phone: `button[data-menu]` folds it out (`body[data-menu-open]`); Escape and a click beside fold it in. */

import { clicked } from './page.js'

const BUTTON = 'button[data-menu]'

export function startNav(): void {
  document.addEventListener('click', event => {
    if (clicked(event, BUTTON)) set(!isOpen())
    else if (isOpen() && !panel()?.contains(event.target as Node)) set(false)
  })
  document.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || !isOpen()) return
    set(false)
    document.querySelector<HTMLElement>(BUTTON)?.focus()
  })
}

function panel(): HTMLElement | null {
  return document.getElementById(document.querySelector(BUTTON)?.getAttribute('aria-controls') ?? '')
}

function isOpen(): boolean {
  return 'menuOpen' in document.body.dataset
}

function set(open: boolean): void {
  document.body.toggleAttribute('data-menu-open', open)
  for (const button of document.querySelectorAll(BUTTON)) button.setAttribute('aria-expanded', String(open))
}
