-- A session goes from one state to another. Which states may lead there is passed in, and checked here.
-- A session that can't send any more gives back what it was handed and had not claimed, uncounted.
--
-- ARGV  sessionId, states it may come from, the new state, reason, now, what goes with it, scan by, sessions per
--       phone, field, value, field, value…    (an empty value removes the field)
--       What goes with it, any of: worker (a worker says so: only the one started last counts), detach (can't send),
--       bump (the worker is to be replaced), release (gives up its place, if it is not linked and has no worker;
--       else the fleet takes it back once the worker is gone), unlink (the link is over), scan (asks for a scan if it
--       is not linked), scanning (only while it waits for a scan),
--       order (orderKind, orderPhone and orderBy are among the fields)
-- Returns { 'OK', state before }, { 'NOT_FOUND' }, { 'STALE' }, { 'REFUSED', state } or { 'TOO_MANY' }

local session, to, reason, now, with = ARGV[1], ARGV[3], ARGV[4], num(ARGV[5]), ARGV[6]
local key = K_session(session)
local s = call('HMGET', key, 'status', 'phone', 'linked', 'declared', 'generation', 'launched', 'scanBy')
if not s[1] then return { 'NOT_FOUND' } end
if among(with, 'worker') and is_stale(session) then return { 'STALE' } end
if not among(ARGV[2], s[1]) or (among(with, 'scanning') and not s[7]) then return { 'REFUSED', s[1] } end

if among(with, 'scan') and not s[3] then
  if s[4] then
    if call('SISMEMBER', K_phone_sessions(s[4]), session) == 0
       and call('SCARD', K_phone_sessions(s[4])) >= num(ARGV[8]) then return { 'TOO_MANY' } end
    call('SADD', K_phone_sessions(s[4]), session)
  end
  call('HSET', key, 'scanBy', ARGV[7])
  local proxy = call('HGET', key, 'proxy')
  if proxy then call('SET', K_temp(session), proxy) end
end
if among(with, 'unlink') then unlink(session) end
for i = 9, #ARGV, 2 do
  if ARGV[i] == 'wanted' then want(session, ARGV[i + 1])
  elseif ARGV[i + 1] == '' then call('HDEL', key, ARGV[i]) else call('HSET', key, ARGV[i], ARGV[i + 1]) end
end
if among(with, 'detach') and s[2] then detach(session, s[2], now) end
if among(with, 'bump') and s[5] then call('HINCRBY', key, 'generation', 1) end
if among(with, 'release') and not s[3] and num(s[6]) == 0 then vacate(session) end
if among(with, 'order') then
  local o = call('HMGET', key, 'orderKind', 'orderPhone', 'orderBy')
  order(session, o[1], o[2] or '', o[3])
end
turn(session, to, reason, now)
return { 'OK', s[1] }
