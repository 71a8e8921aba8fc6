-- A proxy was found out of order, or works again.
--
-- ARGV  proxy, OK or BAD, reason, now
-- Returns 1 if that is news, else 0

local proxy, now = ARGV[1], num(ARGV[4])
local status = call('HGET', K_proxy(proxy), 'status')
if not status or status == ARGV[2] then return 0 end
if ARGV[2] == 'BAD' then
  burn(proxy, ARGV[3], now)
else
  call('HSET', K_proxy(proxy), 'status', 'OK')
  call('HDEL', K_proxy(proxy), 'badAt', 'reason')
  emit('proxy.recovered', 'proxyId', proxy, 'at', now)
  wake('fleet')
end
return 1
