/** `button[data-theme-switch]`: the system's colours, light, dark, and round again. `theme-now.ts` knows it next time. */

import { clicked, onContent } from './page.js'

const KEPT = 'theme'
const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

export function themeAfter(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system'
}

export function startTheme(): void {
  document.addEventListener('click', event => {
    if (clicked(event, 'button[data-theme-switch]')) choose(themeAfter(current()))
  })
  // Another window of ours may have changed it.
  addEventListener('storage', event => {
    if (event.key === KEPT) apply(THEMES.find(theme => theme === event.newValue) ?? 'system')
  })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => apply(current()))
  onContent(label)
}

function current(): Theme {
  return THEMES.find(theme => theme === document.documentElement.dataset['themeChoice']) ?? 'system'
}

function choose(theme: Theme): void {
  apply(theme)
  try {
    if (theme === 'system') localStorage.removeItem(KEPT)
    else localStorage.setItem(KEPT, theme)
  } catch {
    // A browser that keeps nothing: until the next page.
  }
}

function apply(theme: Theme): void {
  const { dataset } = document.documentElement
  dataset['themeChoice'] = theme
  const dark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  dataset['theme'] = dark ? 'dark' : 'light'
  label()
}

/** The switch says what is chosen, in the page's words: `data-label-system`, `data-label-light`, `data-label-dark`. */
function label(): void {
  const theme = current()
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-theme-switch]')) {
    button.dataset['themeSwitch'] = theme
    const words = button.getAttribute(`data-label-${theme}`)
    if (!words) continue
    button.setAttribute('aria-label', words)
    button.title = words
  }
}
