-- A session's states, its place on a proxy, and what is told about it. What may follow what is passed in.

local SESSION_EVENTS_KEPT = 200
local SESSION_STATES_KEPT = 1000

local function among(list, value) return (',' .. list .. ','):find(',' .. value .. ',', 1, true) ~= nil end

-- For everyone who listens, and for the session's own page.
local function tell(session, kind, now, ...)
  emit(kind, 'sessionId', session, 'at', now, ...)
  call('XADD', K_session_events(session), 'MAXLEN', '~', SESSION_EVENTS_KEPT, '*', 'type', kind, 'at', now, ...)
end

-- An account is held or let go: that is news of each of its sessions, too.
local function tell_hold(phone, what, reason, now, ...)
  emit('account.' .. what, 'account', phone, 'at', now, 'reason', reason, ...)
  for _, session in ipairs(call('SMEMBERS', K_account_sessions(phone))) do
    tell(session, 'session.' .. what, now, 'account', phone, 'reason', reason)
  end
end

-- When it was in which state, newest first. A new reason for the same state is no change.
local function note_state(session, before, to, now)
  if before == to then return end
  call('LPUSH', K_session_states(session), whole(now) .. ' ' .. to)
  call('LTRIM', K_session_states(session), 0, SESSION_STATES_KEPT - 1)
end

-- Into a state. Told only if something changed.
local function turn(session, to, reason, now)
  local s = call('HMGET', K_session(session), 'status', 'reason', 'phone')
  call('HSET', K_session(session), 'status', to, 'reason', reason)
  note_state(session, s[1], to, now)
  if s[1] ~= to or (s[2] or '') ~= reason then
    tell(session, 'session.' .. to, now, 'account', s[3] or '', 'reason', reason)
  end
  wake('fleet')
end

-- What a worker says counts only while it is the one that was started last.
local function is_stale(session)
  local s = call('HMGET', K_session(session), 'generation', 'launched')
  return s[2] and s[1] ~= s[2]
end

local function has_room(proxy, capacity)
  if proxy == 'direct' then return call('SCARD', K_proxies) == 0 end
  return call('HGET', K_proxy(proxy), 'status') == 'OK' and call('SCARD', K_proxy_sessions(proxy)) < capacity
end

-- Give up the place on a proxy. The phone keeps its own proxy all the same.
local function release(session)
  local proxy = call('HGET', K_session(session), 'proxy')
  if proxy then call('SREM', K_proxy_sessions(proxy), session) end
  call('DEL', K_temp(session))
  call('HDEL', K_session(session), 'proxy', 'boundAt')
end

-- No longer one of a phone's linked devices, or about to be one.
local function leave_phone(session)
  local s = call('HMGET', K_session(session), 'phone', 'declared')
  if s[1] then call('SREM', K_phone_sessions(s[1]), session) end
  if s[2] then call('SREM', K_phone_sessions(s[2]), session) end
end

-- The same, for good: what is not linked and has no worker holds no place.
local function vacate(session)
  leave_phone(session)
  release(session)
end

-- Take a place; only for the time of the scan while no phone is linked. Whether there is room was asked before.
local function bind(session, proxy, now)
  release(session)
  if proxy ~= 'direct' then call('SADD', K_proxy_sessions(proxy), session) end
  call('HSET', K_session(session), 'proxy', proxy, 'boundAt', now)
  call('HDEL', K_session(session), 'left')
  if call('HEXISTS', K_session(session), 'linked') == 0 then call('SET', K_temp(session), proxy) end
end

-- The link is over: its auth data is to be put aside, and the next start asks for a scan.
local function unlink(session)
  leave_phone(session)
  call('HDEL', K_session(session), 'linked', 'scanBy', 'qr', 'qrUntil', 'code', 'codeUntil', 'codePhone', 'left')
  call('HSET', K_session(session), 'aside', 1)
  local proxy = call('HGET', K_session(session), 'proxy')
  if proxy then call('SET', K_temp(session), proxy) end
end

-- Ask the worker for something besides sending; it hears of it at its next claim, or at once if it waits there.
local function order(session, kind, phone, by)
  local id = call('HINCRBY', K_session(session), 'orders', 1)
  call('HSET', K_session(session), 'order', id, 'orderKind', kind, 'orderPhone', phone, 'orderBy', by)
  wake('outbox:' .. session)
  return id
end

local function want(session, wanted)
  local before = call('HGET', K_session(session), 'wanted')
  if before ~= 'delete' and (before or wanted == 'delete') then call('HSET', K_session(session), 'wanted', wanted) end
end

-- True if that is news.
local function burn(proxy, reason, now)
  if call('HGET', K_proxy(proxy), 'status') ~= 'OK' then return false end
  call('HSET', K_proxy(proxy), 'status', 'BAD', 'badAt', now, 'reason', reason)
  emit('proxy.bad', 'proxyId', proxy, 'at', now, 'reason', reason)
  wake('fleet')
  return true
end
