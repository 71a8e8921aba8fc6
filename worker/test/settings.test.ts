import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BAD_SETTINGS, type Environment, forgetSettings, readSettings, SettingsError } from '../src/settings.js'

const SECRET = 'whsec_YW4gZXhhbXBsZSBzZWNyZXQsIG9mIG5vIHdvcmtlciE='

function environment(changes: Environment = {}): Environment {
  return {
    SESSION_ID: 'worker_1',
    PROXY_URL: 'socks5h://us%40er:p%3Ass@proxy.example:1080',
    WEBHOOK_URL: 'http://127.0.0.1:8081/api/webhook',
    WEBHOOK_SECRET: SECRET,
    ENABLE_KEEP_ALIVE: 'false',
    DEVICE_NAME: 'Chrome (Switchboard 1)',
    SESSIONS_DIR: '/var/lib/switchboard/sessions',
    ...changes
  }
}

function problems(changes: Environment): readonly string[] {
  try {
    readSettings(environment(changes))
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
  return []
}

test('settings are read as the server gives them', () => {
  assert.deepEqual(readSettings(environment()), {
    sessionId: 'worker_1',
    proxy: {
      host: 'proxy.example',
      port: 1080,
      user: 'us@er',
      password: 'p:ss',
      url: 'socks5h://us%40er:p%3Ass@proxy.example:1080'
    },
    webhookUrl: 'http://127.0.0.1:8081/api/webhook',
    webhookSecret: SECRET,
    keepAlive: false,
    deviceName: 'Chrome (Switchboard 1)',
    folder: '/var/lib/switchboard/sessions/worker_1'
  })
})

test('what may be left out has a default, and an empty variable is one that was left out', () => {
  const settings = readSettings(environment({ ENABLE_KEEP_ALIVE: undefined, DEVICE_NAME: '', SESSIONS_DIR: undefined }))
  assert.equal(settings.keepAlive, true)
  assert.equal(settings.deviceName, 'Switchboard')
  assert.equal(settings.folder, '/app/sessions/worker_1')
})

test('there is no proxy only if that is said out loud', () => {
  assert.equal(readSettings(environment({ PROXY_URL: 'direct' })).proxy, null)
  for (const PROXY_URL of ['', 'Direct', 'none', undefined])
    assert.match(problems({ PROXY_URL })[0] ?? '', /^PROXY_URL: /)
})

test('a proxy may do without credentials, and be an IPv6 address', () => {
  const { proxy } = readSettings(environment({ PROXY_URL: 'socks5h://[2001:db8::7]:1080' }))
  assert.deepEqual(proxy, { host: '2001:db8::7', port: 1080, url: 'socks5h://[2001:db8::7]:1080' })
})

test('every problem is told at once, with the variable and an example', () => {
  const told = problems({
    SESSION_ID: '../worker_2',
    PROXY_URL: undefined,
    WEBHOOK_URL: 'ftp://x/webhook',
    WEBHOOK_SECRET: 'secret',
    ENABLE_KEEP_ALIVE: 'maybe',
    DEVICE_NAME: 'a\nb',
    SESSIONS_DIR: 'sessions'
  })
  const names = told.map(line => line.split(':')[0])
  assert.deepEqual(names, [
    'SESSION_ID',
    'PROXY_URL',
    'WEBHOOK_URL',
    'WEBHOOK_SECRET',
    'ENABLE_KEEP_ALIVE',
    'DEVICE_NAME',
    'SESSIONS_DIR'
  ])
  for (const line of told) assert.match(line, /^[^\n]+\. For example: [^\n]+$/)
  assert.match(told[1] ?? '', /is not set/)
})

test('socks5:// is refused, with the reason', () => {
  assert.match(problems({ PROXY_URL: 'socks5://192.0.2.7:1080' })[0] ?? '', /names would be resolved outside the proxy/)
})

test('a proxy that is not written as it should be is refused, and nothing of it is repeated', () => {
  const wrong = [
    'http://hunter2:hunter2@hunter2:1080',
    'hunter2',
    'socks5h://hunter2',
    'socks5h://hunter2:hunter2@hunter2',
    'socks5h://hunter2:hunter2@hunter2:99999',
    'socks5h://hunter2:hunter2@hunter2:1080/hunter2',
    'socks5h://hunter2:hun%ter2@host:1080',
    'socks5h://hunter2:hunter2%FF@host:1080',
    'socks5h://hunter2:hunter2%00@host:1080',
    `socks5h://hunter2:${'hunter2'.repeat(50)}@host:1080`,
    'socks5h://:hunter2@host:1080',
    'socks5h://@host:1080',
    'socks5h://hunter2:hunter2@host:1080\n',
    'socks5h://hunter2 @host:1080',
    'socks5h://2001:db8::7:1080',
    'socks5h://[hunter2]:1080',
    'socks5h://-hunter2:1080'
  ]
  for (const PROXY_URL of wrong) {
    const told = problems({ PROXY_URL })
    assert.equal(told.length, 1, `${PROXY_URL} was taken`)
    assert.doesNotMatch(told.join(), /hunter2/)
  }
})

test('an address of the server that other calls could not be derived from is refused', () => {
  for (const WEBHOOK_URL of [
    'http://a/',
    'http://a/api/webhooks',
    'http://u:p@a/api/webhook',
    'http://a/api/webhook?x'
  ]) {
    assert.equal(problems({ WEBHOOK_URL }).length, 1, WEBHOOK_URL)
  }
  assert.deepEqual(problems({ WEBHOOK_URL: 'https://switchboard.example/base/api/webhook' }), [])
})

test('a secret that is no key is refused, and not repeated', () => {
  for (const WEBHOOK_SECRET of ['whsec_', 'whsec_aGk=', SECRET.slice(6), `${SECRET}!`, 'whsec_%%%%']) {
    const told = problems({ WEBHOOK_SECRET })
    assert.equal(told.length, 1, 'a bad secret was taken')
    assert.doesNotMatch(told.join(), /aGk=|YW4g|%%/)
  }
})

test('what was read can be forgotten, and nothing else is', () => {
  const env = environment({ PATH: '/usr/bin' })
  forgetSettings(env)
  assert.deepEqual(env, { PATH: '/usr/bin' })
})

test('bad settings have an exit code of their own', () => {
  assert.equal(BAD_SETTINGS, 78)
})
