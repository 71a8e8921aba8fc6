/**
 * Everything that goes to WhatsApp goes through the session's proxy, by host name: the websocket, `https` requests, and
 * every `fetch` of this process. The calls to our own server are the one exception; they bring an agent of their own.
 */
import http from 'node:http'
import https from 'node:https'
import { SocksProxyAgent } from 'socks-proxy-agent'
import type { ProxyAddress } from './proxy_url.js'

/** Returns the agent for the websocket. Without a proxy (`direct`, which the operator has to ask for) nothing changes. */
export function useProxy(proxy: ProxyAddress | null): SocksProxyAgent | undefined {
  if (proxy === null) return undefined
  // No `timeout`: over wss it also kills the idle socket. A hanging proxy is given up after 30 s by the library.
  const agent = new SocksProxyAgent(proxy.url, { keepAlive: false })
  agent.proxy.host = proxy.host // the agent leaves an IPv6 address in its brackets, and would look that up as a name
  http.globalAgent = agent
  https.globalAgent = agent
  globalThis.fetch = proxiedFetch(proxy)
  return agent
}

/** The library's downloads use the global `fetch`. It costs some MB of memory, so it is loaded when first asked for. */
function proxiedFetch(proxy: ProxyAddress): typeof globalThis.fetch {
  let loading: ReturnType<typeof load> | undefined
  async function load() {
    const [{ fetch }, { socksDispatcher }] = await Promise.all([import('undici'), import('fetch-socks')])
    const login = proxy.user === undefined ? {} : { userId: proxy.user, password: proxy.password ?? '' }
    return { fetch, dispatcher: socksDispatcher({ type: 5, host: proxy.host, port: proxy.port, ...login }) }
  }
  return async (input, init) => {
    loading ??= load()
    const { fetch, dispatcher } = await loading
    const response = await fetch(
      input as Parameters<typeof fetch>[0],
      { ...init, dispatcher } as Parameters<typeof fetch>[1]
    )
    return response as unknown as Response
  }
}
