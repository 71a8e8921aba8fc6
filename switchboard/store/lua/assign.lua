-- A session gets a place on a proxy: its first, or another after a fault. The phone's own proxy goes with it when
-- that was the one at fault. The worker is to be replaced.
--
-- ARGV  sessionId, the proxy it has now or '', the new one, places per proxy, now
-- Returns 'OK', 'STALE' (it has another one by now, is connected, or is not wanted) or 'NO_ROOM' (choose anew)

local session, from, to, now = ARGV[1], ARGV[2], ARGV[3], num(ARGV[5])
local key = K_session(session)
local s = call('HMGET', key, 'proxy', 'wanted', 'phone', 'linked', 'status', 'left')
if s[2] ~= 'run' or (s[1] or '') ~= from then return 'STALE' end
if s[5] == 'connected' and from ~= 'direct' then return 'STALE' end
if not has_room(to, num(ARGV[4])) then return 'NO_ROOM' end

if s[3] then detach(session, s[3], now) end
bind(session, to, now)
call('HINCRBY', key, 'generation', 1)
if s[4] and to ~= 'direct' then
  local own = call('GET', K_phone_proxy(s[3]))
  if not own or own == from or call('HGET', K_proxy(own), 'status') ~= 'OK' then
    call('SET', K_phone_proxy(s[3]), to)
  end
end
local left = from ~= '' and from or s[6] -- its last proxy may be out of the pool by now
if left then tell(session, 'proxy.failover', now, 'account', s[3] or '', 'from', left, 'to', to) end
turn(session, 'starting', left and 'failover' or '', now)
return 'OK'
