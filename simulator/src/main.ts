/** The simulator's program: `serve` runs it, every other command speaks to the one that runs. */
import { commandHelp, runCommand } from './cli.js'

const STOP_WITHIN_MS = 900
const SERVE_HELP = `Usage: main.js serve [options]       runs the simulator until SIGTERM or SIGINT
  --data DIR             where its keys, accounts and media are kept (default data/simulator)
  --port N               of WhatsApp itself (default: any free one, as for all ports)
  --control-port N       of the control API, on loopback
  --proxy USER:PASSWORD  a SOCKS5 proxy that leads to it; repeat for more; "none" asks for no password
  --proxy-port N         its port; repeat in the same order
  --listen ADDRESS       where the proxies listen (default 127.0.0.1)
  --allow HOST:PORT      besides WhatsApp, the proxies may lead here; repeat for more
  --history inline|external   how the first history comes: with the notice, or as a download
  --inbound lid|pn       whether contacts write by their LID (as today) or by their number
  --answer               the contacts read, answer and write by themselves
  --until-stdin-closes   ends with the program that started it
`

async function serve(args: readonly string[]): Promise<void> {
  // Only now: a short command need not wait for the whole protocol to be loaded.
  const { readServeOptions, startSimulator } = await import('./serve.js')
  const options = readServeOptions(args)
  const simulator = await startSimulator(options, line => process.stderr.write(`${line}\n`))
  let stopping = false
  const stop = (): void => {
    if (stopping) return
    stopping = true
    // Whatever still hangs then, the state on disk is whole at any moment.
    setTimeout(() => process.exit(0), STOP_WITHIN_MS)
    simulator.stop().then(() => process.exit(0), fail)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  if (options.untilStdinCloses) process.stdin.resume().on('end', stop).on('error', stop)
  process.stdout.write(`${JSON.stringify(simulator.running)}\n`)
}

async function run([command, ...rest]: readonly string[]): Promise<void> {
  if (command === 'serve') await serve(rest)
  else if (command === undefined || command === 'help' || command === '--help') {
    process.stdout.write(`${SERVE_HELP}\n${commandHelp()}\n`)
  } else process.stdout.write(`${await runCommand([command, ...rest])}\n`)
}

function fail(error: unknown): void {
  process.stderr.write(`${reason(error)}\n`)
  process.exit(1)
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const taken = 'code' in error && error.code === 'EADDRINUSE' && 'port' in error
  return taken ? `port ${error.port} is taken: stop what uses it, or choose another one` : error.message
}

run(process.argv.slice(2)).catch(fail)
