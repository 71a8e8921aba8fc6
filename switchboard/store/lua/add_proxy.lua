-- A proxy for the pool. One at the same place (host, port, user) is the same one: its new URL replaces the old,
-- unless it was found not to work.
--
-- ARGV  url, host and port to show, place, source, now, OK or BAD, reason
-- Returns { id, 1 if it is new, else 0, or -1 if it is known and nothing was changed }

local url, host, place, source, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], num(ARGV[5])
for _, id in ipairs(call('SMEMBERS', K_proxies)) do
  if call('HGET', K_proxy(id), 'place') == place then
    if ARGV[6] == 'BAD' then return { id, -1 } end
    if call('HGET', K_proxy(id), 'url') ~= url then call('HSET', K_proxy(id), 'urlAt', now) end
    call('HSET', K_proxy(id), 'url', url, 'host', host, 'source', source)
    wake('fleet')
    return { id, 0 }
  end
end
local id = 'proxy_' .. call('INCR', K_proxies_seq)
call('SADD', K_proxies, id)
call('HSET', K_proxy(id), 'url', url, 'host', host, 'place', place, 'source', source, 'addedAt', now,
     'status', ARGV[6], 'reason', ARGV[7])
if ARGV[6] == 'BAD' then call('HSET', K_proxy(id), 'badAt', now) end
emit('proxy.added', 'proxyId', id, 'at', now)
wake('fleet')
return { id, 1 }
