-- A worker has logged out, as it was ordered to.
--
-- ARGV  sessionId
-- Returns 1, or 0 if there is no such session any more

local key = K_session(ARGV[1])
if call('EXISTS', key) == 0 then return 0 end
call('HSET', key, 'unlinked', 1)
call('HDEL', key, 'order')
wake('fleet')
return 1
