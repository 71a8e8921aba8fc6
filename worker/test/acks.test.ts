import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Acks, outcomeOf } from '../src/acks.js'
import { Directory } from '../src/directory.js'

for (const [error, kind] of [
  ['429', 'rate_limited'],
  ['463', 'restricted'],
  ['479', 'retryable'],
  ['500', 'retryable'],
  ['503', 'retryable'],
  ['400', 'refused'],
  ['406', 'refused'],
  ['nonsense', 'refused']
] as const) {
  test(`an ack with error ${error} is ${kind}`, () => {
    const outcome = outcomeOf(error)
    assert.equal(outcome.sent, false)
    assert.equal(!outcome.sent && outcome.class, kind)
    assert.match(!outcome.sent ? outcome.error : '', /^status_(\d{3}|unknown)$/)
  })
}

test('only a restriction bears an end', () => {
  assert.deepEqual(outcomeOf('463', 5), { sent: false, class: 'restricted', error: 'status_463', until: 5 })
  assert.deepEqual(outcomeOf('429', 5), { sent: false, class: 'rate_limited', error: 'status_429', until: null })
  assert.deepEqual(outcomeOf(undefined), { sent: true })
})

test('an ack that comes before anyone waits is not lost on the one who registered', async () => {
  const acks = new Acks()
  const answer = acks.expect('A')
  acks.came('A', '429')
  acks.giveUp('A')
  assert.deepEqual(await answer, { error: '429' })
})

test('a lost connection ends every wait without an answer', async () => {
  const acks = new Acks()
  const answers = [acks.expect('A'), acks.expect('B')]
  acks.connectionLost()
  assert.deepEqual(await Promise.all(answers), ['connection_lost', 'connection_lost'])
})

test('nobody is looked up twice, an absent one for a minute only, and an unanswered question is asked again', async () => {
  let now = 0
  const asked: string[] = []
  const answers: Record<string, (string | null | undefined)[]> = {
    '1': ['one'],
    '2': [null, 'two'],
    '3': [undefined, 'three']
  }
  const lookUp = async (phone: string) => {
    asked.push(phone)
    return answers[phone]?.shift()
  }
  const directory = new Directory(() => now)
  assert.equal(await directory.find('1', lookUp), 'one')
  assert.equal(await directory.find('1', lookUp), 'one')
  assert.equal(await directory.find('2', lookUp), null)
  assert.equal(await directory.find('2', lookUp), null)
  assert.equal(await directory.find('3', lookUp), undefined)
  assert.equal(await directory.find('3', lookUp), 'three')
  now += 60_000
  assert.equal(await directory.find('2', lookUp), 'two')
  assert.deepEqual(asked, ['1', '2', '3', '3', '2'])
})

test('what is remembered is bounded', async () => {
  const directory = new Directory(() => 0)
  const asked: string[] = []
  const lookUp = async (phone: string) => {
    asked.push(phone)
    return phone
  }
  for (let n = 0; n <= 5_000; n += 1) await directory.find(String(n), lookUp)
  await directory.find('5000', lookUp)
  assert.equal(asked.length, 5_001)
  await directory.find('0', lookUp)
  assert.equal(asked.length, 5_002)
})
