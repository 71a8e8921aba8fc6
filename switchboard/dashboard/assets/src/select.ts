/**
 * Choosing rows: `[data-select-all]` ticks every `[data-select]` around it, `[data-selected-count]` says how many are,
 * and `button[data-bulk]` can be pressed when some are. "Around it" is `[data-selectable]`, else its form or table.
 */

import { clicked, language, onContent } from './page.js'

const SCOPES = ['[data-selectable]', 'form', 'table']

export function startSelect(): void {
  document.addEventListener('change', event => {
    const all = clicked(event, 'input[data-select-all]')
    if (all instanceof HTMLInputElement) {
      for (const box of boxesIn(scopeOf(all))) if (!box.disabled) box.checked = all.checked
    }
    if (all || clicked(event, 'input[data-select]')) countAll()
  })
  onContent(countAll)
}

function scopeOf(element: Element): Element {
  for (const scope of SCOPES) {
    const found = element.closest(scope)
    if (found) return found
  }
  return document.body
}

function boxesIn(scope: Element): HTMLInputElement[] {
  return [...scope.querySelectorAll<HTMLInputElement>('input[data-select]')]
}

function countAll(): void {
  for (const all of document.querySelectorAll<HTMLInputElement>('input[data-select-all]')) count(all)
}

function count(all: HTMLInputElement): void {
  const scope = scopeOf(all)
  const boxes = boxesIn(scope)
  const chosen = boxes.filter(box => box.checked).length
  all.checked = chosen > 0 && chosen === boxes.length
  all.indeterminate = chosen > 0 && chosen < boxes.length
  const words = new Intl.NumberFormat(language()).format(chosen)
  for (const place of scope.querySelectorAll('[data-selected-count]')) {
    if (place.textContent !== words) place.textContent = words
  }
  for (const button of scope.querySelectorAll<HTMLButtonElement>('button[data-bulk]')) button.disabled = chosen === 0
  scope.toggleAttribute('data-some-selected', chosen > 0)
}
