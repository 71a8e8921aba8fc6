/** Two sockets joined by a proxy: carries bytes both ways, and can be slowed, frozen and cut. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Traffic {
  bytesUp: number
  bytesDown: number
}

export class Tunnel {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #delayMs: () => number
  readonly #stopped = new AbortController()
  #thawed: Promise<void> = Promise.resolve()
  #thaw: () => void = () => undefined
  #isFrozen = false

  constructor(client: Socket, upstream: Socket, delayMs: () => number) {
    this.#client = client
    this.#upstream = upstream
    this.#delayMs = delayMs
  }

  /** Carries until both sides have ended. */
  async run(traffic: Traffic): Promise<void> {
    const up = this.#carry(this.#client, this.#upstream, size => {
      traffic.bytesUp += size
    })
    const down = this.#carry(this.#upstream, this.#client, size => {
      traffic.bytesDown += size
    })
    await Promise.all([up, down])
    this.cut()
  }

  /** Nothing passes any more, not even the news that a side has ended. What comes meanwhile is kept for later. */
  freeze(): void {
    if (this.#isFrozen) return
    this.#isFrozen = true
    this.#thawed = new Promise(resolve => {
      this.#thaw = resolve
    })
  }

  thaw(): void {
    this.#isFrozen = false
    this.#thaw()
  }

  cut(): void {
    this.#stopped.abort()
    this.thaw()
    this.#client.destroy()
    this.#upstream.destroy()
  }

  async #carry(from: Socket, to: Socket, count: (size: number) => void): Promise<void> {
    try {
      for await (const chunk of from.iterator({ destroyOnReturn: false })) {
        await this.#wait()
        count((chunk as Buffer).length)
        if (!to.write(chunk) && !to.destroyed) await once(to, 'drain', { signal: this.#stopped.signal })
      }
      await this.#thawed
      to.end()
    } catch {
      // A side broke off. The other one must see that too, though not through a frozen link.
      await this.#thawed
      this.cut()
    }
  }

  async #wait(): Promise<void> {
    const delayMs = this.#delayMs()
    if (delayMs > 0) await sleep(delayMs, undefined, { signal: this.#stopped.signal })
    await this.#thawed
  }
}
