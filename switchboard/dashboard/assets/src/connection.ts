/** Says in `#connection` when the page has been without news for some seconds, and when they come again. */

import type { Clock } from './clock.js'

const PATIENCE_MS = 3_000
const BACK_MS = 3_000

export class Connection {
  readonly #clock: Clock
  #cancel: (() => void) | null = null
  #lost = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  broken(): void {
    if (this.#lost || this.#cancel) return
    this.#cancel = this.#clock.after(PATIENCE_MS, () => {
      this.#lost = true
      show('lost', element => element.dataset['lost'])
    })
  }

  opened(): void {
    this.#cancel?.()
    this.#cancel = null
    if (this.#lost) {
      show('live', element => element.dataset['back'])
      this.#clock.after(BACK_MS, () => {
        if (!this.#lost) hide()
      })
    } else document.body.dataset['connection'] = 'live'
    this.#lost = false
  }
}

function show(state: 'live' | 'lost', text: (element: HTMLElement) => string | undefined): void {
  document.body.dataset['connection'] = state
  const element = document.getElementById('connection')
  if (!element) return
  element.textContent = text(element) ?? ''
  element.hidden = false
}

function hide(): void {
  const element = document.getElementById('connection')
  if (element) element.textContent = ''
}
