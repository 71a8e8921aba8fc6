/**
 * What a linked account costs without Switchboard: the library's own script, as short as it can be. Run with a folder
 * and a proxy's URL; says in lines of its own when it shows a QR code and when it is connected.
 */
import { DisconnectReason, makeWASocket, useMultiFileAuthState } from 'baileys'
import { SocksProxyAgent } from 'socks-proxy-agent'

const [folder, proxy] = process.argv.slice(2)
const agent = new SocksProxyAgent(proxy)

async function connect() {
  const { state, saveCreds } = await useMultiFileAuthState(folder)
  const socket = makeWASocket({ auth: state, agent })
  socket.ev.on('creds.update', saveCreds)
  socket.ev.on('connection.update', ({ connection, qr, lastDisconnect }) => {
    if (qr) process.stdout.write(`QR_CODE ${qr}\n`)
    if (connection === 'open') process.stdout.write('CONNECTED\n')
    if (connection === 'close' && lastDisconnect?.error?.output?.statusCode !== DisconnectReason.loggedOut) connect()
  })
}

await connect()
