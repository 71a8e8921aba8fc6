-- A worker takes the message handed over to its session: outbox -> claimed, under a lease.
-- The same instance asking again while it holds a lease gets the same message: its answer was lost.
--
-- ARGV  sessionId, instance, now, lease in ms
-- Returns {} or { messageId, to, text, attempt, leaseUntil }

local session, instance, now, lease = ARGV[1], ARGV[2], num(ARGV[3]), num(ARGV[4])
local holder = session .. '/' .. instance

local function answer(id, until_)
  local m = call('HMGET', K_message(id), 'to', 'text', 'attempts')
  return { id, m[1], m[2], m[3], until_ }
end

local phone = call('HGET', K_session(session), 'phone')
if not phone then return {} end
local acc = K_account(phone)

local id = call('LPOP', K_outbox(session))
if id then
  local until_ = whole(now + lease)
  call('HINCRBY', K_message(id), 'attempts', 1)
  call('HSET', K_message(id), 'place', 'claimed', 'status', 'sending')
  call('HSET', acc, 'claimed', holder, 'leaseUntil', until_)
  call('HINCRBY', acc, 'epoch', 1)
  call('ZADD', K_due, until_, phone)
  return answer(id, until_)
end

local held = call('HMGET', acc, 'inflight', 'claimed', 'leaseUntil')
if held[1] and held[2] == holder and now < num(held[3]) then return answer(held[1], held[3]) end
return {}
