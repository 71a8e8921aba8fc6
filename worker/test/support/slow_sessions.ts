/** Loaded into a worker before anything of its own: reading a session takes a while, so that whoever does not wait is found out. */
import { setTimeout as pause } from 'node:timers/promises'
import { AuthStore } from '../../src/auth_store.js'

const SLOW_MS = 5
const really = AuthStore.prototype.get

AuthStore.prototype.get = function (this: AuthStore, type, ids) {
  const found = really.call(this, type, ids)
  // The library waits for whatever it gets.
  return type === 'session' ? (pause(SLOW_MS, found) as unknown as Record<string, unknown>) : found
}
