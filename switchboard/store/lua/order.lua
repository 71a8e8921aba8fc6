-- Ask a worker for something besides sending.
--
-- ARGV  sessionId, kind, phone or '', by
-- Returns the order's id, or 0 if there is no such session

if call('EXISTS', K_session(ARGV[1])) == 0 then return 0 end
call('HDEL', K_session(ARGV[1]), 'code', 'codeUntil', 'codePhone')
return order(ARGV[1], ARGV[2], ARGV[3], ARGV[4])
