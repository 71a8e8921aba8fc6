-- A proxy leaves the pool. With force, its sessions lose their places and are to get others.
--
-- ARGV  proxy, force (0|1), now
-- Returns { 'OK' }, { 'NOT_FOUND' } or { 'IN_USE', sessions… }

local proxy, now = ARGV[1], num(ARGV[3])
if call('EXISTS', K_proxy(proxy)) == 0 then return { 'NOT_FOUND' } end
local sessions = call('SMEMBERS', K_proxy_sessions(proxy))
if #sessions > 0 and ARGV[2] ~= '1' then return { 'IN_USE', unpack(sessions) } end
for _, session in ipairs(sessions) do
  local s = call('HMGET', K_session(session), 'phone', 'wanted')
  release(session)
  call('HINCRBY', K_session(session), 'generation', 1)
  if s[1] then detach(session, s[1], now) end
  if s[2] == 'run' then
    call('HSET', K_session(session), 'left', proxy)
    turn(session, 'disconnected', 'proxy_removed', now)
  end
end
call('DEL', K_proxy(proxy), K_proxy_sessions(proxy))
call('SREM', K_proxies, proxy)
emit('proxy.removed', 'proxyId', proxy, 'at', now)
wake('fleet')
return { 'OK' }
