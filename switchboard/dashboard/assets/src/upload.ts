/** Files dropped onto `label.drop` go into its file field; `[data-file-name]` in it says which one was chosen. */

import { clicked } from './page.js'

const DROP = 'label.drop'

export function startUpload(): void {
  for (const name of ['dragenter', 'dragover'] as const) {
    document.addEventListener(name, event => {
      const label = clicked(event, DROP)
      if (!label) return
      event.preventDefault()
      label.dataset['over'] = ''
    })
  }
  document.addEventListener('dragleave', event => {
    const label = clicked(event, DROP)
    const inside = event.relatedTarget instanceof Node && label?.contains(event.relatedTarget)
    if (label && !inside) delete label.dataset['over']
  })
  document.addEventListener('drop', drop)
  document.addEventListener('change', event => {
    const label = clicked(event, DROP)
    if (label) showName(label)
  })
}

function drop(event: DragEvent): void {
  const label = clicked(event, DROP)
  const field = fieldOf(label)
  if (!label || !field || !event.dataTransfer) return
  event.preventDefault()
  delete label.dataset['over']
  if (event.dataTransfer.files.length === 0) return
  field.files = event.dataTransfer.files
  field.dispatchEvent(new Event('change', { bubbles: true }))
}

function fieldOf(label: HTMLElement | null): HTMLInputElement | null {
  return label?.querySelector<HTMLInputElement>('input[type="file"]') ?? null
}

function showName(label: HTMLElement): void {
  const place = label.querySelector('[data-file-name]')
  const name = [...(fieldOf(label)?.files ?? [])].map(file => file.name).join(', ')
  if (place && name) place.textContent = name
}
