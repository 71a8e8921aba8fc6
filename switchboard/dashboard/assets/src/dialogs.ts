/**
 * Dialogs: `button[data-confirm="id"]` opens one, `button[data-close]` and a click beside it close it; Escape and the
 * way back of the focus are the browser's. htmx's own question (`hx-confirm`) is asked in `<dialog id="confirm">`:
 * `#confirm-text`, `button[data-yes]`, which says and looks what the pressed button does.
 */

import { clicked } from './page.js'

const YES = 'yes'

interface Question {
  readonly elt: Element
  readonly triggeringEvent?: Event
  readonly question?: string | null
  issueRequest(skipConfirmation: boolean): void
}

export function startDialogs(): void {
  document.addEventListener('click', event => {
    const opener = clicked(event, 'button[data-confirm]')
    if (opener) open(document.getElementById(opener.dataset['confirm'] ?? ''))
    clicked(event, 'button[data-close]')?.closest('dialog')?.close()
    clicked(event, 'button[data-yes]')?.closest('dialog')?.close(YES)
    if (event.target instanceof HTMLDialogElement && isBeside(event, event.target)) event.target.close()
  })
  document.addEventListener('htmx:confirm', event => ask(event as CustomEvent<Question>))
}

function open(dialog: HTMLElement | null): void {
  if (!(dialog instanceof HTMLDialogElement) || dialog.open) return
  dialog.returnValue = ''
  dialog.showModal()
}

/** The backdrop belongs to the dialog; what is outside of its box is the backdrop. */
function isBeside(click: MouseEvent, dialog: HTMLDialogElement): boolean {
  const box = dialog.getBoundingClientRect()
  return click.clientX < box.left || click.clientX > box.right || click.clientY < box.top || click.clientY > box.bottom
}

/** htmx tells of every request so; only some bear a question. Without a dialog in the page, the browser's own asks. */
function ask(event: CustomEvent<Question>): void {
  const { question } = event.detail
  const dialog = document.getElementById('confirm')
  if (!question || !(dialog instanceof HTMLDialogElement)) return
  event.preventDefault()
  const text = document.getElementById('confirm-text')
  if (text) text.textContent = question
  name(dialog.querySelector<HTMLElement>('[data-yes]'), pressed(event.detail))
  open(dialog)
  const answered = () => {
    if (dialog.returnValue === YES) event.detail.issueRequest(true)
  }
  dialog.addEventListener('close', answered, { once: true })
}

function pressed({ elt, triggeringEvent }: Question): Element | null {
  const submitter = triggeringEvent instanceof SubmitEvent ? triggeringEvent.submitter : null
  return submitter ?? (elt.matches('button') ? elt : elt.querySelector('button'))
}

/** "Delete" rather than "Yes": a person reads the buttons, and not always the question. */
function name(yes: HTMLElement | null, button: Element | null): void {
  if (!yes || !button) return
  yes.textContent = button.textContent?.trim() || button.getAttribute('aria-label')
  yes.className = button.classList.contains('danger') ? 'danger' : 'primary'
}
