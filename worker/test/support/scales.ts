/** Loaded into a worker before anything of its own: at each SIGUSR2 it prints what it weighs once all rubbish is gone. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

process.on('SIGUSR2', () => {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  process.stdout.write(`${heapUsed + external}\n`)
})
