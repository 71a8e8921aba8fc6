-- A new session with its place on a proxy and, if its phone is known, its place among that phone's devices.
-- All of it or nothing. The same idempotency key gives the same session again.
--
-- ARGV  sessionId or '' for the next worker_<n>, name, phone or '', proxy, places per proxy, sessions per phone,
--       now, scan by, idempotency key or '', digest of the request, life of the key in s, device name stem
-- Returns { 'OK', id }, { 'KNOWN', id }, { 'CONFLICT' }, { 'EXISTS' }, { 'TOO_MANY' } or { 'NO_ROOM' } (choose anew)

local id, name, phone, proxy, now, idem = ARGV[1], ARGV[2], ARGV[3], ARGV[4], num(ARGV[7]), ARGV[9]

if idem ~= '' then
  local known = call('HMGET', K_idempotency(idem), 'digest', 'session')
  if known[1] then return known[1] == ARGV[10] and { 'KNOWN', known[2] } or { 'CONFLICT' } end
end
if id ~= '' and call('EXISTS', K_session(id)) == 1 then return { 'EXISTS' } end
if phone ~= '' and call('SCARD', K_phone_sessions(phone)) >= num(ARGV[6]) then return { 'TOO_MANY' } end
if not has_room(proxy, num(ARGV[5])) then return { 'NO_ROOM' } end

while id == '' or call('EXISTS', K_session(id)) == 1 do id = 'worker_' .. call('INCR', K_sessions_seq) end
call('HSET', K_session(id), 'status', 'starting', 'reason', '', 'createdAt', now, 'name', name, 'wanted', 'run',
     'device', ARGV[12] .. ' ' .. id, 'generation', 1, 'scanBy', ARGV[8])
note_state(id, '', 'starting', now)
call('SADD', K_sessions, id)
if phone ~= '' then
  call('HSET', K_session(id), 'declared', phone)
  call('SADD', K_phone_sessions(phone), id)
end
bind(id, proxy, now)
if idem ~= '' then
  call('HSET', K_idempotency(idem), 'digest', ARGV[10], 'session', id)
  call('EXPIRE', K_idempotency(idem), ARGV[11])
end
tell(id, 'session.starting', now, 'account', '', 'reason', '', 'proxyId', proxy)
wake('fleet')
return { 'OK', id }
