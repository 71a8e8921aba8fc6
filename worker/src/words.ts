/** What somebody wrote, whatever kind of message it came in. Pure; knows WhatsApp's names of the kinds, not the library. */

/** A message's content without its wrappers (ephemeral, view once…): one field for each kind, of which one is set. */
export type Content = Readonly<Record<string, unknown>>

type Fields = Readonly<Record<string, unknown>> | null | undefined

/** No messages: they change, mark or accompany others. An edit is not among them. */
const SIGNALS = new Set([
  'protocolMessage',
  'reactionMessage',
  'encReactionMessage',
  'pollUpdateMessage',
  'keepInChatMessage',
  'pinInChatMessage',
  'senderKeyDistributionMessage',
  'fastRatchetKeySenderKeyDistributionMessage',
  'messageContextInfo',
  'messageHistoryNotice',
  'placeholderMessage',
  'call'
])

/** Where the words are, kind by kind; the first that is there counts. */
const WORDS: readonly (readonly [kind: string, ...fields: string[]])[] = [
  ['extendedTextMessage', 'text'],
  ['imageMessage', 'caption'],
  ['videoMessage', 'caption'],
  ['documentMessage', 'caption'],
  ['buttonsResponseMessage', 'selectedDisplayText'],
  ['templateButtonReplyMessage', 'selectedDisplayText'],
  ['listResponseMessage', 'title'],
  ['interactiveResponseMessage', 'body', 'text'],
  ['buttonsMessage', 'contentText'],
  ['listMessage', 'description'],
  ['templateMessage', 'hydratedTemplate', 'hydratedContentText'],
  ['interactiveMessage', 'body', 'text'],
  ['pollCreationMessage', 'name'],
  ['pollCreationMessageV2', 'name'],
  ['pollCreationMessageV3', 'name'],
  ['groupInviteMessage', 'caption'],
  ['locationMessage', 'comment'],
  ['liveLocationMessage', 'caption'],
  ['orderMessage', 'message'],
  ['productMessage', 'body']
]

const LONGEST_BYTES = 200 * 1024

/** '' for a message without words (a picture, a voice note…), null for what is no message at all. */
export function wordsOf(content: Content | undefined): string | null {
  const edited = editIn(content)
  if (edited !== undefined) return wordsOf(edited)
  const kinds = Object.keys(content ?? {}).filter(kind => content?.[kind] && !SIGNALS.has(kind))
  if (content === undefined || kinds.length === 0) return null
  if (typeof content['conversation'] === 'string') return fitting(content['conversation'])
  for (const [kind, ...fields] of WORDS) {
    const words = fields.reduce<unknown>((value, field) => (value as Fields)?.[field], content[kind])
    if (typeof words === 'string' && words) return fitting(words)
  }
  return ''
}

function editIn(content: Content | undefined): Content | undefined {
  const protocol = content?.['protocolMessage'] as Fields
  return (protocol?.['editedMessage'] as Content | null | undefined) ?? undefined
}

/** What the server can take: well-formed, and within its limit however much of it has to be escaped in JSON. */
function fitting(words: string): string {
  let text = Buffer.from(words, 'utf8').toString('utf8')
  while (Buffer.byteLength(JSON.stringify(text)) > LONGEST_BYTES) text = shorter(text)
  return text
}

function shorter(text: string): string {
  const keep = Math.floor((text.length * LONGEST_BYTES) / Buffer.byteLength(JSON.stringify(text))) - 1
  return Buffer.from(text.slice(0, keep), 'utf8')
    .toString('utf8')
    .replace(/\uFFFD$/, '')
}
