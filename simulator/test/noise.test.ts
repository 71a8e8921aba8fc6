import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeNoiseHandler } from 'baileys'
import { newServerIdentity } from '../src/certificates.js'
import { type BinaryNode, Curve, encodeBinaryNode, NOISE_WA_HEADER, node, proto } from '../src/codec.js'
import { Noise } from '../src/noise.js'
import { logger } from './client.js'

/** Baileys' own handshake against ours, with the client's bytes cut as `cut` says. */
async function handshake(cut: (bytes: Buffer) => Buffer[], routingInfo?: Buffer) {
  const heard: Buffer[] = []
  const hellos: { username: string; key: Buffer }[] = []
  const toClient: Buffer[] = []
  const server = new Noise(newServerIdentity(Date.now()), bytes => toClient.push(bytes), {
    onHello: ({ username }, key) => hellos.push({ username: String(username), key }),
    onFrame: bytes => heard.push(bytes)
  })
  const ephemeral = Curve.generateKeyPair()
  const noiseKey = Curve.generateKeyPair()
  const client = makeNoiseHandler({
    keyPair: ephemeral,
    NOISE_HEADER: NOISE_WA_HEADER,
    logger,
    ...(routingInfo ? { routingInfo } : {})
  })
  const say = (data: Uint8Array) => {
    for (const piece of cut(Buffer.from(client.encodeFrame(data)))) server.feed(piece)
  }
  say(proto.HandshakeMessage.encode({ clientHello: { ephemeral: ephemeral.public } }).finish())
  const answer = proto.HandshakeMessage.decode((toClient.shift() ?? Buffer.alloc(3)).subarray(3))
  const sealedKey = client.processHandshake(answer, noiseKey)
  const payload = client.encrypt(proto.ClientPayload.encode({ username: 15_551 }).finish())
  say(proto.HandshakeMessage.encode({ clientFinish: { static: sealedKey, payload } }).finish())
  await client.finishInit()
  return { server, client, heard, hellos, toClient, noiseKey, say }
}

test('the handshake works with frames cut into single bytes and with a routing prefix', async () => {
  const bytewise = (bytes: Buffer) => Array.from(bytes, byte => Buffer.from([byte]))
  for (const routing of [undefined, Buffer.from([8, 8, 5])]) {
    const { say, heard, hellos, noiseKey } = await handshake(bytewise, routing)
    assert.equal(hellos[0]?.username, '15551')
    assert.deepEqual(hellos[0]?.key, Buffer.from(noiseKey.public))
    say(Buffer.from('first'))
    say(Buffer.from('second'))
    assert.deepEqual(heard.map(String), ['first', 'second'])
  }
})

test('several frames in one piece are told apart, and the client reads what the server says', async () => {
  const { server, client, heard, toClient } = await handshake(bytes => [bytes])
  const frames = ['one', 'two', 'three'].map(text => client.encodeFrame(Buffer.from(text)))
  server.feed(Buffer.concat(frames))
  assert.deepEqual(heard.map(String), ['one', 'two', 'three'])
  server.send(encodeBinaryNode(node('success', { t: '1' })))
  const said: (BinaryNode | Uint8Array)[] = []
  await client.decodeFrame(toClient.shift() ?? Buffer.alloc(0), frame => said.push(frame))
  assert.equal((said[0] as BinaryNode).tag, 'success')
})

test('strangers are turned away at the intro', () => {
  const server = new Noise(newServerIdentity(Date.now()), () => undefined, {
    onHello: () => undefined,
    onFrame: () => undefined
  })
  assert.throws(() => server.feed(Buffer.from('GET / HTTP/1.1\r\n\r\n')), /intro/)
})
