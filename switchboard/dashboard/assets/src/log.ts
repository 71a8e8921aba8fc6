/**
 * The live log: rows come by a stream of their own (`data-log-source`) as HTML that the server made, the newest on top
 * of `[data-log]`. It can be paused, searched, and never grows over a thousand rows.
 */

import { browserClock } from './clock.js'
import { Backlog, KEPT_ROWS, matches } from './log_rows.js'
import { clicked, contentAdded, language, onContent } from './page.js'
import { Stream } from './stream.js'

class Log {
  readonly #body: Element
  readonly #stream: Stream
  readonly #backlog = new Backlog<string>()
  #paused = false

  constructor(container: HTMLElement, source: string) {
    this.#body = container.querySelector('tbody') ?? container
    this.#stream = new Stream(source, { on: { row: event => this.#came(event.data) } }, browserClock)
    this.#stream.open()
    this.search()
  }

  close(): void {
    this.#stream.close()
  }

  togglePause(button: HTMLElement): void {
    this.#paused = !this.#paused
    button.setAttribute('aria-pressed', String(this.#paused))
    if (!this.#paused) this.#insert(this.#backlog.take())
    showCount(this.#backlog.count)
  }

  search(): void {
    const wanted = searchText()
    for (const row of this.#body.children) hideUnless(row, wanted)
  }

  #came(row: string): void {
    if (this.#paused) {
      this.#backlog.add(row)
      showCount(this.#backlog.count)
    } else this.#insert([row])
  }

  #insert(rows: readonly string[]): void {
    const wanted = searchText()
    for (const html of rows) {
      const template = document.createElement('template')
      template.innerHTML = html
      const row = template.content.firstElementChild
      // A stream that came back may bring again what is already there.
      if (!row || (row.id && document.getElementById(row.id))) continue
      hideUnless(row, wanted)
      this.#body.prepend(row)
    }
    while (this.#body.children.length > KEPT_ROWS) this.#body.lastElementChild?.remove()
    contentAdded()
  }
}

export function startLog(): void {
  let log: Log | null = null
  let container: HTMLElement | null = null
  let source: string | undefined
  onContent(() => {
    const found = document.querySelector<HTMLElement>('[data-log]')
    if (found === container && found?.dataset['logSource'] === source) return
    log?.close()
    container = found
    source = found?.dataset['logSource']
    log = found && source ? new Log(found, source) : null
  })
  document.addEventListener('click', event => {
    const button = clicked(event, '[data-log-pause]')
    if (button) log?.togglePause(button)
  })
  document.addEventListener('input', event => {
    if (clicked(event, 'input[data-log-search]')) log?.search()
  })
}

function searchText(): string {
  return document.querySelector<HTMLInputElement>('input[data-log-search]')?.value.trim() ?? ''
}

function hideUnless(row: Element, wanted: string): void {
  if (row instanceof HTMLElement) row.hidden = !matches(row.textContent ?? '', wanted)
}

/** "12 new" in the page's words: `data-log-new="{count} new"`. */
function showCount(count: number): void {
  for (const badge of document.querySelectorAll<HTMLElement>('[data-log-new]')) {
    const number = new Intl.NumberFormat(language()).format(count)
    badge.textContent = (badge.dataset['logNew'] || '{count}').replace('{count}', number)
    badge.hidden = count === 0
  }
}
