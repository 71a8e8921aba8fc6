/**
 * Many linked accounts in one process, to see what they cost the simulator: they keep everything in memory and do
 * nothing. Run with the simulator's control port, a proxy's URL and how many; says CONNECTED once all of them are.
 */
import { initAuthCreds, makeWASocket } from 'baileys'
import { SocksProxyAgent } from 'socks-proxy-agent'

const AT_ONCE = 8
const [control, proxy, count] = process.argv.slice(2)
const agent = new SocksProxyAgent(proxy)
const quiet = { level: 'silent', child: () => quiet }
for (const level of ['trace', 'debug', 'info', 'warn', 'error']) quiet[level] = () => {}

function keysInMemory() {
  const kept = new Map()
  return {
    get: (type, ids) => Object.fromEntries(ids.map(id => [id, kept.get(`${type} ${id}`)])),
    set: changes => {
      for (const [type, values] of Object.entries(changes)) {
        for (const [id, value] of Object.entries(values)) kept.set(`${type} ${id}`, value)
      }
    }
  }
}

async function scan(qr, phone) {
  const body = JSON.stringify({ qr, phone })
  await fetch(`http://127.0.0.1:${control}/scan`, { method: 'POST', body })
}

function link(phone, auth = { creds: initAuthCreds(), keys: keysInMemory() }) {
  return new Promise(resolve => {
    const socket = makeWASocket({ auth, agent, logger: quiet })
    socket.ev.on('creds.update', update => Object.assign(auth.creds, update))
    socket.ev.on('connection.update', ({ connection, qr }) => {
      if (qr) scan(qr, phone)
      if (connection === 'open') resolve()
      if (connection === 'close') link(phone, auth).then(resolve)
    })
  })
}

async function linkInTurns(waiting) {
  for (const number of waiting) await link(`97252${String(number).padStart(7, '0')}`)
}

const waiting = Array(Number(count)).keys()
await Promise.all(Array.from({ length: AT_ONCE }, () => linkInTurns(waiting)))
process.stdout.write('CONNECTED\n')
