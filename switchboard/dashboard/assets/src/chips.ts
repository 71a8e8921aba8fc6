/** `button[data-insert][data-into="id"]` writes its text into that field, where the cursor is. */

import { clicked } from './page.js'

export function startChips(): void {
  document.addEventListener('click', event => {
    const chip = clicked(event, 'button[data-insert]')
    const field = document.getElementById(chip?.dataset['into'] ?? '')
    if (!chip || !(field instanceof HTMLTextAreaElement)) return
    field.setRangeText(chip.dataset['insert'] ?? '', field.selectionStart, field.selectionEnd, 'end')
    field.focus()
    field.dispatchEvent(new Event('input', { bubbles: true }))
  })
}
