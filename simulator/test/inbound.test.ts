import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inflateSync } from 'node:zlib'
import { downloadEncryptedContent, getMediaKeys, proto } from 'baileys'
import { lidOf } from '../src/addresses.js'
import { MediaStore } from '../src/media.js'
import { startWhatsApp } from '../src/server.js'
import type { WhatsApp } from '../src/types.js'
import { Client, paired, until } from './client.js'

const ALICE = '15557772001'
const BOB = '4915112345679'

let whatsapp: WhatsApp
let alice: Client

before(async () => {
  whatsapp = await startWhatsApp({ dataDir: null, media: new MediaStore(null) })
  alice = await paired(whatsapp, ALICE, 'Alice')
  await settled()
})

after(async () => {
  await alice.end()
  await whatsapp.close()
})

function waiting(): number {
  return whatsapp.accounts()[0]?.waiting ?? 0
}

async function settled(): Promise<void> {
  await until('an empty mailbox', () => waiting() === 0)
}

async function offline(): Promise<void> {
  await until('being offline', () => !whatsapp.accounts()[0]?.online)
}

test('a contact writes: by LID, with the number beside it', async () => {
  const id = await whatsapp.sendFrom(BOB, ALICE, 'hi Alice')
  assert.deepEqual(await alice.texts(1), ['hi Alice'])
  const [message] = alice.received.filter(({ key }) => key.id === id)
  assert.equal(message?.key.remoteJid, `${lidOf(BOB)}@lid`)
  assert.equal(message?.key.remoteJidAlt, `${BOB}@s.whatsapp.net`)
  assert.equal(message?.pushName, `Contact ${BOB}`)
  await settled()
})

test('an answer reaches the contact, and the contact can go on in the same session', async () => {
  await alice.send(BOB, 'hi Bob', 'A1')
  await alice.status('A1', 3)
  await whatsapp.sendFrom(BOB, ALICE, 'how are you?', { id: 'CHOSEN1' })
  await until('the message', () => alice.received.some(({ key }) => key.id === 'CHOSEN1'))
  await settled()
})

test('an image comes with its caption and can be downloaded and decrypted', async () => {
  const picture = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(1000, 7)])
  const id = await whatsapp.sendFrom(BOB, ALICE, 'look', { media: picture })
  const message = await until('the image', () => alice.received.find(({ key }) => key.id === id)?.message?.imageMessage)
  assert.equal(message.caption, 'look')
  assert.equal(message.mimetype, 'image/png')
  const keys = await getMediaKeys(message.mediaKey, 'image')
  const stream = await downloadEncryptedContent(`http://127.0.0.1:${whatsapp.port}${message.directPath}`, keys)
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  assert.deepEqual(Buffer.concat(chunks), picture)
})

test('messages wait while the device is away and come in order, marked as old', async () => {
  await settled()
  await alice.kill()
  await offline()
  alice.received.length = 0
  alice.upserts.length = 0
  for (const text of ['one', 'two', 'three']) await whatsapp.sendFrom(BOB, ALICE, text)
  assert.equal(waiting(), 3)
  await alice.reconnect()
  assert.deepEqual(await alice.texts(3), ['one', 'two', 'three'])
  assert.deepEqual(alice.upserts, ['append', 'append', 'append'])
  await settled()
})

test('a message that was never acknowledged comes again, the same bytes', async () => {
  const before = alice.memory.snapshot()
  alice.nodes.length = 0
  alice.gag()
  const id = await whatsapp.sendFrom(BOB, ALICE, 'twice')
  const sent = () => alice.nodes.filter(({ tag, attrs }) => tag === 'message' && attrs['id'] === id)
  await until('the message', () => sent().length === 1)
  await alice.kill(before)
  await offline()
  assert.equal(waiting(), 1)
  await alice.reconnect()
  await until('the message again', () => sent().length === 2)
  await settled()
  const [first, second] = sent()
  assert.deepEqual(first?.content, second?.content)
  assert.equal(first?.attrs['offline'], undefined)
  assert.equal(second?.attrs['offline'], '0')
})

test('a device that lost its session asks again and can then read the message', async () => {
  await settled()
  alice.memory.forget('session')
  await whatsapp.sendFrom(BOB, ALICE, 'lost session')
  await until('the message', () => alice.inbox().includes('lost session'))
  assert.ok((whatsapp.requests()['receipt:retry:retry'] ?? 0) >= 1)
  await settled()
})

test('contacts can be addressed by number instead', async () => {
  const other = await startWhatsApp({ dataDir: null, inboundBy: 'pn' })
  const carol = await paired(other, '15557772002')
  const id = await other.sendFrom(BOB, '15557772002', 'by number')
  const message = await until('the message', () => carol.received.find(({ key }) => key.id === id))
  assert.equal(message.key.remoteJid, `${BOB}@s.whatsapp.net`)
  assert.equal(message.key.remoteJidAlt, `${lidOf(BOB)}@lid`)
  await carol.end()
  await other.close()
})

test('the history can be fetched from the media host', async () => {
  const other = await startWhatsApp({ dataDir: null, media: new MediaStore(null), historyAs: 'external' })
  const carol = new Client(other, { history: false })
  await other.scan(await carol.qr(), '15557772003')
  await carol.closed()
  carol.connect()
  const notification = await until('the notification', () => {
    const messages = carol.received.map(({ message }) => message?.protocolMessage?.historySyncNotification)
    return messages.find(found => found)
  })
  const keys = await getMediaKeys(notification.mediaKey, 'md-msg-hist')
  const stream = await downloadEncryptedContent(`http://127.0.0.1:${other.port}${notification.directPath}`, keys)
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  assert.equal(proto.HistorySync.decode(inflateSync(Buffer.concat(chunks))).progress, 100)
  await carol.end()
  await other.close()
})

test('who has no linked device cannot be written to', async () => {
  await assert.rejects(whatsapp.sendFrom(BOB, '15550000001', 'x'), { name: 'Refused', message: /no linked device/ })
})
