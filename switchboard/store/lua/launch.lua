-- The worker of this generation is about to be started. Noted before it runs, so that its first word counts.
--
-- ARGV  sessionId, generation, now, what stands for what the worker is told of us
-- Returns 1, or 0 if it is not wanted any more in this generation

local key, now = K_session(ARGV[1]), num(ARGV[3])
local s = call('HMGET', key, 'generation', 'wanted', 'reason', 'status')
if s[1] ~= ARGV[2] or s[2] ~= 'run' or s[4] == 'connected' then return 0 end
call('HSET', key, 'launched', ARGV[2], 'startedAt', now, 'told', ARGV[4])
call('HDEL', key, 'lastPing', 'notBefore', 'handle', 'qr', 'qrUntil', 'code', 'codeUntil', 'codePhone')
turn(ARGV[1], 'starting', s[3] == 'moving_to_own_proxy' and s[3] or '', now)
return 1
