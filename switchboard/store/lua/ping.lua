-- A worker lives. With proof (WhatsApp is heard) its silences are forgotten, too.
--
-- ARGV  sessionId, now, proof (0|1)
-- Returns 1, or 0 if there is no such session, or it is not the one started last

if call('EXISTS', K_session(ARGV[1])) == 0 or is_stale(ARGV[1]) then return 0 end
call('HSET', K_session(ARGV[1]), 'lastPing', ARGV[2])
if ARGV[3] == '1' then call('HDEL', K_session(ARGV[1]), 'silences') end
return 1
