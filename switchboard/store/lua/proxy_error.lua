-- A worker could not use its proxy: the proxy is out of order, the session off line until it has another one.
-- A report that is older than the session's place, or than its worker, counts for nothing: the worker before this one
-- may have written it down about its own proxy when the session had moved already.
--
-- A worker that was started with a URL that has changed since is only started anew. One that reports again and again
-- is kept waiting longer each time, so that it can't walk through the whole pool.
--
-- ARGV  sessionId, when it happened, code, now, states it may come from, first gap in ms, longest gap in ms
-- Returns { 'OK', proxy }, { 'NOT_FOUND' }, { 'STALE' } or { 'REFUSED', state }

local session, now = ARGV[1], num(ARGV[4])
local key = K_session(session)
local s = call('HMGET', key, 'status', 'phone', 'proxy', 'boundAt', 'startedAt')
if not s[1] then return { 'NOT_FOUND' } end
if is_stale(session) or num(ARGV[2]) < math.max(num(s[4]), num(s[5])) then return { 'STALE' } end
if not among(ARGV[5], s[1]) then return { 'REFUSED', s[1] } end
if s[3] and num(call('HGET', K_proxy(s[3]), 'urlAt')) > num(s[5]) then
  call('HINCRBY', key, 'generation', 1)
elseif s[3] and s[3] ~= 'direct' and burn(s[3], ARGV[3], now) then
  local faults = call('HINCRBY', key, 'faults', 1)
  if faults > 1 then
    local gap = math.min(num(ARGV[6]) * 4 ^ math.min(faults - 2, 20), num(ARGV[7]))
    call('HSET', key, 'notBefore', whole(now + gap))
  end
end
if s[2] then detach(session, s[2], now) end
turn(session, 'disconnected', 'proxy_error', now)
return { 'OK', s[3] or '' }
