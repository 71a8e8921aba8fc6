-- The end of a session that is to be deleted: every place it had is free again.
-- What waits for its account stays there, for the account's other sessions.
--
-- ARGV  sessionId, now
-- Returns 1, or 0 if it is not to be deleted

local session, now = ARGV[1], num(ARGV[2])
local s = call('HMGET', K_session(session), 'wanted', 'phone', 'linked', 'order', 'orderKind', 'unlinked')
if s[1] ~= 'delete' then return 0 end
release(session)
leave_phone(session)
if s[2] then
  call('SREM', K_account_sessions(s[2]), session)
  detach(session, s[2], now)
end
call('SREM', K_sessions, session)
call('DEL', K_session(session), K_temp(session), K_session_events(session), K_session_states(session), K_seen(session),
     K_requests(session))
-- It was never linked, was logged out before, or has said that it logged out as ordered.
local unlinked = (not s[3] or s[6]) and not (s[4] and s[5] == 'logout') and 1 or 0
call('SET', K_gone(session), unlinked, 'EX', 60)
emit('session.deleted', 'sessionId', session, 'account', s[2] or '', 'at', now, 'unlinked', unlinked)
wake('fleet')
return 1
