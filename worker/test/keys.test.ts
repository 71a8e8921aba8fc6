/** A key of Signal is used up on the disk before what it encrypted leaves the worker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AuthStore } from '../src/auth_store.js'
import { CONTACT, preload, Stage } from './support/stage.js'

test('when a message is about to leave, its recipient is on the disk with the key that is used', async () => {
  const stage = await Stage.open()
  try {
    const worker = await stage.linkedWorker(undefined, preload('kill_at_send'))
    await stage.until(() => stage.switchboard.isPolled, 'a claim')
    worker.process.kill('SIGUSR2')
    stage.offer('never to be sent')
    assert.deepEqual(await worker.exit, { code: null, signal: 'SIGKILL' })
    assert.deepEqual(await stage.control('/wire'), [])

    const store = AuthStore.open(stage.session)
    const [lid] = store.list('lid-mapping').filter(id => id.includes(CONTACT))
    const user = store.get('lid-mapping', [lid ?? ''])[lid ?? '']
    const sessions = store.list('session').filter(id => id.startsWith(`${user}_`) || id.startsWith(CONTACT))
    assert.notEqual(sessions.length, 0, `no session for the recipient among ${store.list('session')}`)
    for (const [id, session] of Object.entries(store.get('session', sessions))) {
      assert.ok(sendingChainAdvanced(session), `${id} would use its first key again`)
    }
    store.close()
  } finally {
    await stage.close()
  }
})

/** libsignal counts the messages of a chain from -1 on; a sending chain is of type 1. */
function sendingChainAdvanced(record: unknown): boolean {
  const { _sessions } = record as { _sessions: Record<string, { _chains: Record<string, Chain> }> }
  const chains = Object.values(_sessions).flatMap(session => Object.values(session._chains))
  return chains.some(({ chainType, chainKey }) => chainType === 1 && chainKey.counter >= 0)
}

interface Chain {
  readonly chainType: number
  readonly chainKey: { readonly counter: number }
}
