-- A session is linked and can send. The first time, this is the birth of its account here, and its place on the
-- proxy becomes the phone's own. A session that was linked to another phone leaves that one first.
--
-- A phone that has its own proxy already keeps it: the session moves there, unless that proxy is out of order (then
-- this one becomes the phone's) or full (then the session stays where it is, and that is told).
-- A phone that has all its sessions already gets no other: this one is refused and logged out.
-- A linked session never turns up under another phone without having been logged out: then a person must look.
--
-- ARGV  sessionId, phone, now, states it may come from, sessions per phone, places per proxy, log out by
-- Returns { 'OK', 1 if the account is new }, { 'MOVED' }, { 'TOO_MANY' }, { 'NOT_FOUND' }, { 'STALE' },
--         { 'OTHER_PHONE' } or { 'REFUSED', state }

local session, phone, now = ARGV[1], ARGV[2], num(ARGV[3])
local key = K_session(session)
local s = call('HMGET', key, 'status', 'phone', 'proxy', 'linked')
local before, proxy = s[2], s[3]
if not s[1] then return { 'NOT_FOUND' } end
if is_stale(session) then return { 'STALE' } end
if not among(ARGV[4], s[1]) then return { 'REFUSED', s[1] } end
if s[4] and before ~= phone then
  detach(session, before, now)
  want(session, 'stop')
  turn(session, 'failed', 'other_phone', now)
  return { 'OTHER_PHONE' }
end

if call('SISMEMBER', K_phone_sessions(phone), session) == 0
   and call('SCARD', K_phone_sessions(phone)) >= num(ARGV[5]) then
  if before then detach(session, before, now) end
  unlink(session)
  want(session, 'stop')
  order(session, 'logout', '', ARGV[7])
  turn(session, 'failed', 'too_many_sessions', now)
  return { 'TOO_MANY' }
end

if before and before ~= phone then
  call('SREM', K_account_sessions(before), session)
  detach(session, before, now)
end
leave_phone(session)
call('HSET', key, 'phone', phone, 'linked', 1, 'connectedAt', now, 'lastPing', now)
call('HDEL', key, 'declared', 'scanBy', 'qr', 'qrUntil', 'code', 'codeUntil', 'codePhone', 'order', 'silences', 'faults', 'aside',
     'unlinked')
call('DEL', K_temp(session))
call('SADD', K_phone_sessions(phone), session)
call('SADD', K_accounts, phone)
call('SADD', K_account_sessions(phone), session)
local acc = K_account(phone)
local new = call('HSETNX', acc, 'first', now)
if new == 1 then call('HINCRBY', acc, 'rev', 1) end

if proxy and proxy ~= 'direct' then
  local own = call('GET', K_phone_proxy(phone))
  if not own or own == proxy or call('HGET', K_proxy(own), 'status') ~= 'OK' then
    call('SET', K_phone_proxy(phone), proxy)
  elseif has_room(own, num(ARGV[6])) then
    bind(session, own, now)
    call('HINCRBY', key, 'generation', 1)
    detach(session, phone, now)
    tell(session, 'proxy.moved', now, 'account', phone, 'from', proxy, 'to', own)
    turn(session, 'starting', 'moving_to_own_proxy', now)
    return { 'MOVED' }
  else
    tell(session, 'proxy.split', now, 'account', phone, 'proxyId', proxy, 'own', own)
  end
end

call('SADD', K_connected(phone), session)
call('HINCRBY', acc, 'epoch', 1)
call('ZADD', K_spare, 'NX', 0, phone)
bring_forward(phone, now)
wake('jobs')
call('HSET', key, 'status', 'connected', 'reason', '')
note_state(session, s[1], 'connected', now)
tell(session, 'session.connected', now, 'account', phone)
wake('fleet')
return { 'OK', new }
