import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Accounts } from '../src/accounts.js'
import { base64, newPair } from '../src/codec.js'
import { openRecords } from '../src/records.js'
import { startWhatsApp } from '../src/server.js'
import { Store } from '../src/state.js'
import { type Client, paired } from './client.js'

test('two hundred accounts are listed, kept and loaded without effort', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'simulator-'))
  const store = new Store(dir)
  const records = openRecords(store)
  const accounts = new Accounts(records)
  const key = newPair().public
  for (let n = 0; n < 200; n++) {
    const phone = String(15_558_000_000 + n)
    const signedPreKey = { id: 1, key, signature: key }
    const keys = { noiseKey: key, identityKey: key, registrationId: 1, signedPreKey, signedIdentity: key }
    accounts.link({ phone, device: 1, name: 'test', ...keys }, `Owner ${n}`)
    records.oneTimeKeys.set(`${phone}:1`, base64(Buffer.alloc(812 * 36)))
  }
  store.close()
  const start = performance.now()
  const whatsapp = await startWhatsApp({ dataDir: dir })
  assert.ok(performance.now() - start < 2000)
  assert.equal(whatsapp.accounts().length, 200)
  await whatsapp.close()
  rmSync(dir, { recursive: true, force: true })
})

test('one process serves many devices that all write at once', async () => {
  const whatsapp = await startWhatsApp({ dataDir: null })
  const clients: Client[] = []
  for (let n = 0; n < 5; n++) clients.push(await paired(whatsapp, String(15_559_000_000 + n)))
  await Promise.all(
    clients.map(async (client, n) => {
      for (let m = 0; m < 5; m++) await client.send(String(15_550_100_000 + m), `text ${n} ${m}`, `C${n}M${m}`)
      for (let m = 0; m < 5; m++) await client.status(`C${n}M${m}`, 3)
    })
  )
  assert.equal(whatsapp.shown().length, 25)
  for (const client of clients) await client.end()
  await whatsapp.close()
})
