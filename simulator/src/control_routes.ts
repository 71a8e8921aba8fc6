/** What the control API offers: each path with its fields and the one call behind it. HTTP itself is in control.ts. */
import { FAULT_KINDS } from './fault_help.js'
import { count, flag, oneOf, orNull, phone, phones, readFields, text } from './fields.js'
import type { ProxyView, SocksProxy } from './socks5.js'
import { PROXY_MODES } from './socks5_fault.js'
import { Refused, type WhatsApp } from './types.js'

export interface Offer {
  readonly whatsapp: WhatsApp
  /** Known by their place in the list, counted from 1. */
  readonly proxies: readonly SocksProxy[]
}

export interface Call {
  /** The parsed JSON body, or the query of a GET. */
  readonly input: unknown
  /** What stood in the path where the route has `{…}`. */
  readonly name: string
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly help: string
  run(offer: Offer, call: Call): unknown
}

/** There is nothing by this name. */
export class Unknown extends Refused {}

const DONE = { ok: true }
const BETWEEN = { from: phone, to: phone }

export const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/state',
    help: 'accounts, pending links, faults, proxies and how often each request was seen',
    run: ({ whatsapp, proxies }) => ({
      accounts: whatsapp.accounts(),
      pending: whatsapp.pending(),
      faults: whatsapp.faults(),
      proxies: proxies.map((proxy, index) => ({ n: index + 1, ...proxy.view() })),
      requests: whatsapp.requests()
    })
  },
  {
    method: 'GET',
    path: '/messages',
    help: "?from=&to= messages as the recipients' phones show them: each id once",
    run: ({ whatsapp }, { input }) => whatsapp.shown(readFields(input, {}, BETWEEN))
  },
  {
    method: 'GET',
    path: '/wire',
    help: '?from=&to= every message stanza as it came, repeated ones included',
    run: ({ whatsapp }, { input }) => whatsapp.wire(readFields(input, {}, BETWEEN))
  },
  {
    method: 'POST',
    path: '/scan',
    help: '{qr, phone, name?} the owner of the phone scans the QR code',
    run: async ({ whatsapp }, { input }) => {
      const fields = readFields(input, { qr: text, phone }, { name: text })
      await whatsapp.scan(fields.qr, fields.phone, fields.name)
      return DONE
    }
  },
  {
    method: 'POST',
    path: '/enter-code',
    help: '{code, phone, name?} the owner types the pairing code into the phone',
    run: async ({ whatsapp }, { input }) => {
      const fields = readFields(input, { code: text, phone }, { name: text })
      await whatsapp.enterCode(fields.code, fields.phone, fields.name)
      return DONE
    }
  },
  {
    method: 'POST',
    path: '/send',
    help: '{from, to, text, id?} somebody writes to an account; answers {id}',
    run: async ({ whatsapp }, { input }) => {
      const { from, to, text: words, id } = readFields(input, { from: phone, to: phone, text }, { id: text })
      return { id: await whatsapp.sendFrom(from, to, words, id === undefined ? {} : { id }) }
    }
  },
  {
    method: 'POST',
    path: '/read',
    help: '{contact, from, id?} the contact reads what the account `from` sent; answers {count}',
    run: async ({ whatsapp }, { input }) => {
      const { contact, from, id } = readFields(input, { contact: phone, from: phone }, { id: text })
      return { count: await whatsapp.read(contact, from, id) }
    }
  },
  {
    method: 'POST',
    path: '/absent',
    help: '{phones, absent} these numbers have no WhatsApp, or have it again',
    run: ({ whatsapp }, { input }) => {
      const { phones: numbers, absent } = readFields(input, { phones, absent: flag }, {})
      whatsapp.setAbsent(numbers, absent)
      return DONE
    }
  },
  {
    method: 'POST',
    path: '/behave',
    help: '{deliveredAfterMs?, readAfterMs?} how fast receipts come; readAfterMs null: nobody reads by itself',
    run: ({ whatsapp }, { input }) => {
      const fields = readFields(input, {}, { deliveredAfterMs: count, readAfterMs: orNull(count) })
      const { deliveredAfterMs, readAfterMs } = fields
      whatsapp.behave({
        ...(deliveredAfterMs === undefined ? {} : { deliveredAfterMs }),
        ...(readAfterMs === undefined ? {} : { readAfterMs: readAfterMs.value })
      })
      return DONE
    }
  },
  onAccount('/ban', 'the account is blocked: cut off, and refused with 403', (whatsapp, of) => whatsapp.ban(of)),
  onAccount('/unban', 'the account is free again', (whatsapp, of) => whatsapp.unban(of)),
  onAccount('/log-out', 'the owner removes the linked device', (whatsapp, of) => whatsapp.logOut(of)),
  onAccount('/replace', 'another program takes over the link', (whatsapp, of) => whatsapp.replace(of)),
  onAccount('/drop', 'the TCP connection ends without a word', (whatsapp, of) => whatsapp.drop(of)),
  {
    method: 'POST',
    path: '/stream-error',
    help: '{phone, code} the server ends the stream with this code',
    run: ({ whatsapp }, { input }) => {
      const fields = readFields(input, { phone, code: count }, {})
      whatsapp.streamError(fields.phone, fields.code)
      return DONE
    }
  },
  {
    method: 'POST',
    path: '/faults',
    help: '{kind, phone?, code?, ms?, request?, times?} a fault that waits for its moment; answers it with its id',
    run: ({ whatsapp }, { input }) => {
      const optional = { phone, code: count, ms: count, request: text, times: count }
      return whatsapp.addFault(readFields(input, { kind: oneOf(FAULT_KINDS) }, optional))
    }
  },
  {
    method: 'DELETE',
    path: '/faults/{id}',
    help: 'the fault is over',
    run: ({ whatsapp }, { name }) => {
      if (whatsapp.removeFault(Number(name))) return DONE
      throw new Unknown(`there is no fault ${name}: GET /state lists those that are set`)
    }
  },
  {
    method: 'GET',
    path: '/proxies/{n}',
    help: 'one proxy: its mode, what it was asked for, and how many bytes went each way',
    run: (offer, { name }) => viewOf(offer, name)
  },
  {
    method: 'POST',
    path: '/proxies/{n}/fault',
    help: `{mode, reply?, ms?} ${PROXY_MODES.join('|')}`,
    run: async (offer, { input, name }) => {
      const proxy = proxyOf(offer, name)
      await proxy.setFault(readFields(input, { mode: oneOf(PROXY_MODES) }, { reply: count, ms: count }))
      return viewOf(offer, name)
    }
  },
  {
    method: 'POST',
    path: '/proxies/{n}/drop',
    help: 'cuts the connections that go through it now; answers {count}',
    run: (offer, { name }) => ({ count: proxyOf(offer, name).drop() })
  }
]

function onAccount(path: string, help: string, act: (whatsapp: WhatsApp, of: string) => void): Route {
  return {
    method: 'POST',
    path,
    help: `{phone} ${help}`,
    run: ({ whatsapp }, { input }) => {
      act(whatsapp, readFields(input, { phone }, {}).phone)
      return DONE
    }
  }
}

function viewOf(offer: Offer, name: string): ProxyView & { n: number } {
  return { n: Number(name), ...proxyOf(offer, name).view() }
}

function proxyOf({ proxies }: Offer, name: string): SocksProxy {
  const proxy = /^[1-9]\d*$/.test(name) ? proxies[Number(name) - 1] : undefined
  if (proxy !== undefined) return proxy
  throw new Unknown(proxies.length === 0 ? 'no proxy runs: start with --proxy' : `proxies are 1 to ${proxies.length}`)
}
