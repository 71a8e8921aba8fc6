/** Before anything is painted: the colours that were chosen here. Not a module, so that it blocks; as short as can be. */
{
  let chosen: string | null = null
  try {
    chosen = localStorage.getItem('theme')
  } catch {
    // A browser that keeps nothing: the system's colours.
  }
  const { dataset } = document.documentElement
  dataset['themeChoice'] = chosen === 'light' || chosen === 'dark' ? chosen : 'system'
  const dark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  dataset['theme'] = dark ? 'dark' : 'light'
}
