/**
 * Fields that are wrong: the server puts the reason into `[data-fault="id of the field"]`, beside the field, which keeps
 * what was typed. It is marked here, and a form that was refused leads to the first one.
 */

import { onContent } from './page.js'

export function startFaults(): void {
  onContent(() => {
    for (const fault of faultsIn(document)) mark(fault)
  })
  document.addEventListener('htmx:afterRequest', event => {
    const { elt, successful } = (event as CustomEvent<{ elt: Element; successful: boolean }>).detail
    if (successful || !elt.matches('form')) return
    const first = faultsIn(elt).find(isSaid)
    if (first) fieldOf(first)?.focus()
  })
}

function faultsIn(place: ParentNode): HTMLElement[] {
  return [...place.querySelectorAll<HTMLElement>('[data-fault]')]
}

function mark(fault: HTMLElement): void {
  const field = fieldOf(fault)
  if (isSaid(fault)) field?.setAttribute('aria-invalid', 'true')
  else field?.removeAttribute('aria-invalid')
}

function isSaid(fault: HTMLElement): boolean {
  return fault.textContent !== ''
}

function fieldOf(fault: HTMLElement): HTMLElement | null {
  return document.getElementById(fault.dataset['fault'] ?? '')
}
