import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wordsOf } from '../src/words.js'

for (const [kind, content, words] of [
  ['a text', { conversation: 'hello' }, 'hello'],
  ['a text with a link', { extendedTextMessage: { text: 'see there' } }, 'see there'],
  ['a picture with a caption', { imageMessage: { caption: 'look' } }, 'look'],
  ['a picture without words', { imageMessage: {} }, ''],
  ['a voice note', { audioMessage: {} }, ''],
  ['several contacts', { contactsArrayMessage: { contacts: [] } }, ''],
  ['a live location', { liveLocationMessage: { caption: 'on my way' } }, 'on my way'],
  ['a poll', { pollCreationMessageV3: { name: 'when?' } }, 'when?'],
  ['a button', { buttonsResponseMessage: { selectedDisplayText: 'Stop' } }, 'Stop'],
  ['an interactive reply', { interactiveResponseMessage: { body: { text: 'yes' } } }, 'yes'],
  ['a kind of tomorrow', { hologramMessage: {} }, ''],
  ['an edit', { protocolMessage: { type: 14, editedMessage: { conversation: 'STOP' } } }, 'STOP'],
  ['words beside keys for a group', { conversation: 'hi', senderKeyDistributionMessage: {} }, 'hi']
] as const) {
  test(`${kind} is a message`, () => assert.equal(wordsOf(content), words))
}

for (const [kind, content] of [
  ['nothing', undefined],
  ['an empty message', {}],
  ['a reaction', { reactionMessage: { text: '👍' } }],
  ['a vote', { pollUpdateMessage: {} }],
  ['a deletion', { protocolMessage: { type: 0 } }],
  ['keys for a group', { senderKeyDistributionMessage: {}, messageContextInfo: {} }]
] as const) {
  test(`${kind} is no message`, () => assert.equal(wordsOf(content), null))
}

test('half a character becomes a whole one, so that the server can read the rest', () => {
  assert.equal(wordsOf({ conversation: 'a\ud800b' }), 'a\ufffdb')
})

for (const [what, text] of [
  ['control characters', '\u0001'.repeat(65_536)],
  ['emoji', '🎉'.repeat(65_536)],
  ['letters', 'x'.repeat(400_000)]
] as const) {
  test(`too many ${what} are cut to what the server takes, between two characters`, () => {
    const words = wordsOf({ conversation: text }) ?? ''
    const bytes = Buffer.byteLength(JSON.stringify(words))
    assert.ok(bytes <= 200 * 1024 && bytes > 190 * 1024, `${bytes} bytes`)
    assert.ok(text.startsWith(words))
  })
}
