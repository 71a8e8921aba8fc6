/**
 * Imported before anything else: libsignal prints whole session records, private keys included, with console.info and
 * console.warn. Nothing of this worker speaks through the console (see log.ts), so all of it is silenced.
 */
const silence = (): void => {}

for (const method of ['debug', 'dir', 'error', 'info', 'log', 'table', 'trace', 'warn'] as const) {
  globalThis.console[method] = silence
}
