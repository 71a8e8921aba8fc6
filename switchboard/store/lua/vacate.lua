-- A session that is not wanted, not linked and has no worker any more gives up its places.
--
-- ARGV  sessionId
-- Returns 1, or 0 if that is not so

local s = call('HMGET', K_session(ARGV[1]), 'wanted', 'linked')
if s[1] ~= 'stop' or s[2] then return 0 end
vacate(ARGV[1])
call('HSET', K_session(ARGV[1]), 'launched', 0)
return 1
