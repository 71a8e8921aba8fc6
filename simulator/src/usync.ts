/** Answers to look-ups of people: whether they are on WhatsApp, which devices they have, what their LID is. */

import type { Accounts } from './accounts.js'
import { type Addressing, addressingOf, addressOf, jidOf } from './addresses.js'
import { type BinaryNode, bytesOf, childOf, grandchildren, node } from './codec.js'
import type { Phones } from './phones.js'
import type { Phone } from './types.js'

interface Asked {
  readonly phone: Phone
  readonly by: Addressing
  readonly real: boolean
}

export function answerUsync(usync: BinaryNode, accounts: Accounts, phones: Phones): BinaryNode[] {
  const query = childOf(usync, 'query')?.content
  const asked = Array.isArray(query) ? query.map(({ tag }) => tag) : []
  const users = grandchildren(usync, 'list', 'user').map(user => {
    const who = whoIs(user)
    return answerUser(asked, who, who.real && !phones.isAbsent(who.phone), accounts)
  })
  const results = asked.map(tag => node(tag))
  return [node('usync', { ...usync.attrs }, [node('result', {}, results), node('list', {}, users)])]
}

function answerUser(asked: readonly string[], who: Asked, exists: boolean, accounts: Accounts): BinaryNode {
  const primary = { phone: who.phone, device: 0 }
  const found: BinaryNode[] = []
  if (asked.includes('contact')) found.push(node('contact', { type: exists ? 'in' : 'out' }))
  if (asked.includes('devices')) {
    const companions = accounts.linkedDevices(who.phone).map(({ device }) => {
      return node('device', { id: String(device), 'key-index': String(device) })
    })
    const devices = exists ? [node('device', { id: '0' }), ...companions] : []
    found.push(node('devices', {}, [node('device-list', {}, devices)]))
  }
  if (asked.includes('lid') && exists) found.push(node('lid', { val: jidOf(primary, 'lid') }))
  if (asked.includes('status')) found.push(node('status', {}, Buffer.alloc(0)))
  return node('user', { jid: jidOf(primary, who.by) }, found)
}

/** People are asked for by number in `<contact>`, by jid of their number, or by LID. */
function whoIs(user: BinaryNode): Asked {
  const jid = user.attrs['jid']
  if (jid) {
    const phone = addressOf(jid)?.phone
    return { phone: phone ?? '0', by: addressingOf(jid), real: phone !== undefined }
  }
  const phone = bytesOf(user, 'contact')?.toString().replace(/\D/g, '') ?? ''
  return { phone: phone || '0', by: 'pn', real: /^[1-9]\d{4,14}$/.test(phone) }
}
