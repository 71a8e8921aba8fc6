/**
 * A network of its own for a process: one cable to this machine and no route, no name server, nothing beyond. Needs root
 * and iproute2; without them a laptop skips what needs it, and continuous integration fails.
 */
import { execFileSync } from 'node:child_process'

/** What a skipped test says, or false if a namespace can be made. */
export function withoutNamespaces(): string | false {
  if (process.env['CI'] === 'true') return false
  if (process.platform !== 'linux') return 'network namespaces are a thing of Linux'
  if (process.getuid?.() !== 0) return 'only root can make a network namespace'
  try {
    execFileSync('ip', ['-V'], { stdio: 'ignore' })
    execFileSync('unshare', ['--net', 'true'], { stdio: 'ignore' })
    return false
  } catch {
    return 'needs ip (of iproute2) and the right to make a network namespace'
  }
}

export class Namespace {
  readonly #name = `switchboard-${process.pid}`
  /** This machine, as seen from within. */
  readonly host: string

  private constructor() {
    const net = `198.51.100.${(process.pid % 60) * 4}`.split('.')
    const last = Number(net.pop())
    const [host, inside] = [last + 1, last + 2].map(number => [...net, number].join('.'))
    this.host = String(host)
    const [near, far] = [`sw${process.pid}a`, `sw${process.pid}b`]
    ip('netns', 'add', this.#name)
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', this.#name)
    ip('address', 'add', `${host}/30`, 'dev', near)
    ip('link', 'set', near, 'up')
    ip('-n', this.#name, 'address', 'add', `${inside}/30`, 'dev', far)
    ip('-n', this.#name, 'link', 'set', far, 'up')
  }

  static make(): Namespace {
    return new Namespace()
  }

  /** A command that runs the one given after it in here. */
  get wrap(): string[] {
    return ['nsenter', `--net=/run/netns/${this.#name}`]
  }

  /** The cable goes with it, once no process is left. */
  remove(): void {
    ip('netns', 'delete', this.#name)
  }
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}
