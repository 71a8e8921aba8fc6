/** `button[data-copy="text"]` or `button[data-copy-from="#id"]` copies, and says so for a moment (`data-copied`). */

import { clicked } from './page.js'

const SAID_MS = 1_500

export function startCopy(): void {
  document.addEventListener('click', event => {
    const button = clicked(event, 'button[data-copy], button[data-copy-from]')
    if (button) void copy(textFor(button), button).then(done => done && say(button))
  })
}

function textFor(button: HTMLElement): string {
  const { copy: text, copyFrom } = button.dataset
  const source = copyFrom ? document.querySelector(copyFrom) : null
  if (source instanceof HTMLInputElement || source instanceof HTMLTextAreaElement) return source.value
  return source?.textContent?.trim() ?? text ?? ''
}

async function copy(text: string, near: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text, near)
  }
}

/** Browsers keep the clipboard from pages without TLS, as one on the local network is; the old way works there. */
function copyBySelection(text: string, near: HTMLElement): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.readOnly = true
  Object.assign(field.style, { position: 'fixed', opacity: '0' })
  ;(near.closest('dialog') ?? document.body).append(field)
  field.select()
  const done = document.execCommand('copy')
  field.remove()
  near.focus()
  return done
}

/** In the button's words; one that is but a picture says it to screen readers, and `data-saying` to the style sheet. */
function say(button: HTMLElement): void {
  const said = button.dataset['copied']
  if (!said || 'saying' in button.dataset) return
  const place = button.querySelector('[data-copy-label]') ?? (button.childElementCount === 0 ? button : null)
  const before = place ? place.textContent : button.getAttribute('aria-label')
  const put = (text: string | null) => {
    if (place) place.textContent = text
    else button.setAttribute('aria-label', text ?? '')
  }
  button.dataset['saying'] = ''
  put(said)
  setTimeout(() => {
    put(before)
    delete button.dataset['saying']
  }, SAID_MS)
}
