import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startWhatsApp } from '../src/server.js'
import type { WhatsApp } from '../src/types.js'
import { Client, paired, until } from './client.js'

let whatsapp: WhatsApp
const clients: Client[] = []

before(async () => {
  whatsapp = await startWhatsApp({ dataDir: null })
})

after(async () => {
  for (const client of clients) await client.end()
  await whatsapp.close()
})

function newClient(): Client {
  const client = new Client(whatsapp)
  clients.push(client)
  return client
}

async function askForCode(client: Client, phone: string): Promise<string> {
  await client.qr()
  const code = await client.socket.requestPairingCode(phone)
  await until('the wish for a code', () =>
    whatsapp.pending().some(({ kind, phone: of }) => kind === 'code' && of === phone)
  )
  return code
}

test('a scanned QR code links a device, which then logs in', async () => {
  const phone = '15557771001'
  const client = newClient()
  const qr = await client.qr()
  assert.deepEqual(
    whatsapp.pending().map(({ kind, phone: of }) => [kind, of]),
    [['qr', null]]
  )
  await whatsapp.scan(qr, phone, 'Alice')
  assert.equal((await client.ending()).code, 515)
  await client.reconnect()
  assert.equal(client.socket.user?.id, `${phone}:1@s.whatsapp.net`)
  assert.deepEqual(whatsapp.pending(), [])
  const [account] = whatsapp.accounts()
  assert.deepEqual(account, {
    phone,
    lid: client.socket.user?.lid?.replace(':1@', '@'),
    name: 'Alice',
    online: true,
    linked: true,
    banned: false,
    logins: 1,
    waiting: account?.waiting,
    deviceName: 'CHROME (Ubuntu)'
  })
})

test('a code that was typed right links a device', async () => {
  const phone = '15557771002'
  const client = newClient()
  const code = await askForCode(client, phone)
  await whatsapp.enterCode(`${code.slice(0, 4)}-${code.slice(4).toLowerCase()}`, phone, 'Bob')
  assert.equal((await client.ending()).code, 515)
  await client.reconnect()
  assert.equal(client.socket.user?.id, `${phone}:1@s.whatsapp.net`)
})

test('a wrong code is refused, and the right one still works afterwards', async () => {
  const phone = '15557771003'
  const client = newClient()
  const code = await askForCode(client, phone)
  const wrong = code === 'AAAAAAAA' ? 'BBBBBBBB' : 'AAAAAAAA'
  await assert.rejects(whatsapp.enterCode(wrong, phone), { name: 'Refused', message: /code is wrong/ })
  assert.equal(client.memory.creds.registered, false)
  await assert.rejects(whatsapp.enterCode(code, '15557779999'), { name: 'Refused', message: /No device asked/ })
  await assert.rejects(whatsapp.enterCode('123', phone), { name: 'Refused', message: /8 letters/ })
  await whatsapp.enterCode(code, phone)
  assert.equal((await client.ending()).code, 515)
  await client.reconnect()
})

test('QR codes of nobody and numbers that are none are refused', async () => {
  const client = newClient()
  const qr = await client.qr()
  await assert.rejects(whatsapp.scan('2@gone,a,b,c', '15557771004'), { name: 'Refused', message: /not on any screen/ })
  await assert.rejects(whatsapp.scan(qr, 'Alice'), { name: 'Refused', message: /phone number/ })
  const forged = qr.split(',')
  forged[1] = Buffer.alloc(32).toString('base64')
  await assert.rejects(whatsapp.scan(forged.join(','), '15557771004'), { name: 'Refused', message: /keys/ })
  whatsapp.setAbsent(['15557771004'], true)
  await assert.rejects(whatsapp.scan(qr, '15557771004'), { name: 'Refused', message: /absent/ })
})

test('a phone links four devices and refuses the fifth until it is logged out', async () => {
  const phone = '15557771005'
  for (let device = 1; device <= 4; device++) {
    const client = await paired(whatsapp, phone)
    clients.push(client)
    assert.equal(client.socket.user?.id, `${phone}:${device}@s.whatsapp.net`)
  }
  const fifth = newClient()
  const qr = await fifth.qr()
  await assert.rejects(whatsapp.scan(qr, phone), { name: 'Refused', message: /4 linked devices/ })
  const former = clients.slice(-5, -1)
  whatsapp.logOut(phone)
  for (const client of former) assert.equal((await client.ending()).code, 401)
  await whatsapp.scan(qr, phone)
  await fifth.ending()
  await fifth.reconnect()
  assert.equal(fifth.socket.user?.id, `${phone}:5@s.whatsapp.net`)
})

test('a passkey is asked for instead of pairing, and the connection stays', async () => {
  const phone = '15557771006'
  const client = newClient()
  const qr = await client.qr()
  whatsapp.addFault({ kind: 'passkey', times: 1 })
  await whatsapp.scan(qr, phone)
  await until('the notification', () => client.nodes.find(({ attrs }) => attrs['type'] === 'passkey_prologue_request'))
  assert.equal(client.socket.ws.isOpen, true)
  assert.equal(
    whatsapp.accounts().some(account => account.phone === phone),
    false
  )
})

test('a client that hangs up in the middle makes the scan fail', async () => {
  const client = new Client(whatsapp)
  const qr = await client.qr()
  client.gag()
  const refused = assert.rejects(whatsapp.scan(qr, '15557771007'), { name: 'Refused', message: /hung up/ })
  await client.kill()
  await refused
})
