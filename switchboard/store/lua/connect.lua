-- A session is linked and can send. The first time, this is the birth of its account here.
-- A session that was linked to another phone leaves that one first.
--
-- ARGV  sessionId, phone, now
-- Returns 1 if the account is new, else 0; -1 if there is no such session

local session, phone, now = ARGV[1], ARGV[2], num(ARGV[3])
if call('EXISTS', K_session(session)) == 0 then return -1 end

local before = call('HGET', K_session(session), 'phone')
if before and before ~= phone then
  call('SREM', K_account_sessions(before), session)
  detach(session, before, now)
end
call('HSET', K_session(session), 'phone', phone, 'status', 'connected', 'connectedAt', now, 'lastPing', now)
call('SADD', K_accounts, phone)
call('SADD', K_account_sessions(phone), session)
call('SADD', K_connected(phone), session)
local acc = K_account(phone)
local new = call('HSETNX', acc, 'first', now)
if new == 1 then call('HINCRBY', acc, 'rev', 1) end
call('HINCRBY', acc, 'epoch', 1)
call('ZADD', K_spare, 'NX', 0, phone)
bring_forward(phone, now)
wake('jobs')
emit('session.connected', 'sessionId', session, 'account', phone, 'at', now)
return new
