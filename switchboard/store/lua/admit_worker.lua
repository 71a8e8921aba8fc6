-- A signed request of a worker: does its session exist, and was this very request made before?
--
-- ARGV  sessionId, request id, now, how long to remember it in ms
-- Returns 'OK', 'NOT_FOUND' or 'REPLAYED'

local session, now, life = ARGV[1], num(ARGV[3]), num(ARGV[4])
if call('EXISTS', K_session(session)) == 0 then return 'NOT_FOUND' end
local requests = K_requests(session)
if call('ZADD', requests, 'NX', now, ARGV[2]) == 0 then return 'REPLAYED' end
call('ZREMRANGEBYSCORE', requests, '-inf', whole(now - life))
call('PEXPIRE', requests, life)
return 'OK'
