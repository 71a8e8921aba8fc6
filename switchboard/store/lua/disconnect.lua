-- A session can't send any more. What it was handed and had not claimed goes back to the queue, uncounted.
--
-- ARGV  sessionId, status, reason, now
-- Returns 1, or 0 if there is no such session

local session, status, reason, now = ARGV[1], ARGV[2], ARGV[3], num(ARGV[4])
if call('EXISTS', K_session(session)) == 0 then return 0 end
call('HSET', K_session(session), 'status', status, 'reason', reason)
local phone = call('HGET', K_session(session), 'phone')
if phone then
  call('SREM', K_connected(phone), session)
  call('HINCRBY', K_account(phone), 'epoch', 1)
  if call('SCARD', K_connected(phone)) == 0 then call('ZREM', K_spare, phone) end
  local id = call('LINDEX', K_outbox(session), 0)
  if id then
    local m = load_message(id)
    leave(id, 'outbox', phone, session, now)
    enter_queue(id, phone, m.priority, m.score, now)
  end
  bring_forward(phone, now)
end
emit('session.disconnected', 'sessionId', session, 'account', phone or '', 'at', now, 'reason', reason)
return 1
