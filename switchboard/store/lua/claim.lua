-- A worker takes the message handed over to its session: outbox -> claimed, under a lease.
-- The account's delay and minute are counted from here: a late claim must not bring two messages close together.
-- The same instance asking again while it holds a lease gets the same message: its answer was lost.
--
-- ARGV  sessionId, instance, now, lease in ms
-- Returns {} or { messageId, to, text, attempt, leaseUntil }

local session, instance, now, lease = ARGV[1], ARGV[2], num(ARGV[3]), num(ARGV[4])
local holder = session .. '/' .. instance

local function message(id) return call('HMGET', K_message(id), 'to', 'text', 'attempts', 'handed') end

local phone = call('HGET', K_session(session), 'phone')
if not phone then return {} end
local acc = K_account(phone)

local id = call('LPOP', K_outbox(session))
if id then
  -- Its account is due when the outbox lease ends, and is then left alone until this longer one does.
  -- A call that waited for the store brings an old moment along: no claim is before its hand-over.
  local m = message(id)
  now = math.max(now, num(m[4]))
  local until_ = whole(now + lease)
  local attempt = whole(num(m[3]) + 1)
  call('HSET', K_message(id), 'place', 'claimed', 'status', 'sending', 'attempts', attempt)
  local late = now - num(m[4])
  call('HSET', acc, 'claimed', holder, 'leaseUntil', until_,
       'notBefore', whole(num(call('HGET', acc, 'notBefore')) + late))
  if late > 0 and call('LINDEX', K_recent(phone), 0) == m[4] then call('LSET', K_recent(phone), 0, whole(now)) end
  return { id, m[1], m[2], attempt, until_ }
end

local held = call('HMGET', acc, 'inflight', 'claimed', 'leaseUntil')
if not held[1] or held[2] ~= holder or now >= num(held[3]) then return {} end
local m = message(held[1])
return { held[1], m[1], m[2], m[3], held[3] }
