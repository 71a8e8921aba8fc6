/** How much may still be written: `[data-left="id"]` counts down from the `data-most` of that field. */

import { clicked, language, onContent } from './page.js'

export function startCharacters(): void {
  const count = () => {
    for (const place of document.querySelectorAll<HTMLElement>('[data-left]')) show(place)
  }
  document.addEventListener('input', event => {
    if (clicked(event, '[data-most]')) count()
  })
  onContent(count)
}

function show(place: HTMLElement): void {
  const field = document.getElementById(place.dataset['left'] ?? '')
  const most = Number(field?.dataset['most'])
  if (!(field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement) || Number.isNaN(most)) return
  const left = charactersLeft(field.value, most)
  place.textContent = new Intl.NumberFormat(language()).format(left)
  place.toggleAttribute('data-over', left < 0)
}

/** As the server counts: an emoji is one, whatever the browser makes of it. */
export function charactersLeft(text: string, most: number): number {
  return most - [...text].length
}
