-- A worker could not use its proxy: the proxy is out of order, the session off line until it has another one.
-- A report that is older than the session's place, or than its worker, counts for nothing: the worker before this one
-- may have written it down about its own proxy when the session had moved already.
--
-- ARGV  sessionId, when it happened, code, now, states it may come from
-- Returns { 'OK', proxy }, { 'NOT_FOUND' }, { 'STALE' } or { 'REFUSED', state }

local session, now = ARGV[1], num(ARGV[4])
local s = call('HMGET', K_session(session), 'status', 'phone', 'proxy', 'boundAt', 'startedAt')
if not s[1] then return { 'NOT_FOUND' } end
if is_stale(session) or num(ARGV[2]) < math.max(num(s[4]), num(s[5])) then return { 'STALE' } end
if not among(ARGV[5], s[1]) then return { 'REFUSED', s[1] } end
if s[3] and s[3] ~= 'direct' then burn(s[3], ARGV[3], now) end
if s[2] then detach(session, s[2], now) end
turn(session, 'disconnected', 'proxy_error', now)
return { 'OK', s[3] or '' }
