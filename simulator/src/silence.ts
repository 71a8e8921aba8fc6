/**
 * Keeps libsignal quiet: it prints whole sessions, private keys included, through the global console.
 * Imported before anything that imports libsignal. The simulator itself never uses the console.
 */

const quiet = (): void => undefined

Object.assign(globalThis.console, { info: quiet, warn: quiet, error: quiet })
