-- A session can't send any more. What it was handed and had not claimed goes back to the queue, uncounted.
--
-- ARGV  sessionId, status, reason, now
-- Returns 1, or 0 if there is no such session

local session, status, reason, now = ARGV[1], ARGV[2], ARGV[3], num(ARGV[4])
if call('EXISTS', K_session(session)) == 0 then return 0 end
call('HSET', K_session(session), 'status', status, 'reason', reason)
local phone = call('HGET', K_session(session), 'phone')
if phone then detach(session, phone, now) end
emit('session.disconnected', 'sessionId', session, 'account', phone or '', 'at', now, 'reason', reason)
return 1
