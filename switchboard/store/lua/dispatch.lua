-- Carry out what was planned for taken accounts: queue -> outbox, queue -> scheduled, outbox -> queue, or wait.
-- Each plan holds only if the account is still as it was seen (its epoch), and every cap is checked again.
--
-- ARGV[1]  JSON { now, room, retentionS, plans: [ { phone, epoch, spare, burst, head, kind, … } ] }
--            kind hand    session, message, daily, perMinute, day, hour, dayEnds, notBefore, lease,
--                         recipientCap, recipientDayEnds
--            kind wait    at (0: only when something changes)
--            kind defer   message, at, reason
--            kind recall  message
--          head: the message seen at the front of the queue, '' if none, null if nobody looked
-- Returns one outcome for each plan: OK | STALE | CAPPED | OPTED_OUT

local input = cjson.decode(ARGV[1])
local now = input.now

-- A day's count and its end: what was counted until now, or nothing if that day is over.
local function day(ends, count, next_ends)
  if now < num(ends) then return num(ends), num(count) end
  return next_ends, 0
end

local function hand(p, acc, seen)
  local m = call('HMGET', K_message(p.message), 'place', 'account', 'to', 'attempts')
  if m[1] ~= 'queue' or m[2] ~= p.phone then return 'STALE' end
  if call('SISMEMBER', K_connected(p.phone), p.session) == 0 then return 'STALE' end
  if call('SISMEMBER', K_suppressions, m[3]) == 1 then
    cancel(load_message(p.message), now, 'recipient opted out', input.retentionS)
    return 'OPTED_OUT'
  end
  local day_ends, sent = day(seen[3], seen[4], p.dayEnds)
  if sent >= p.daily or num(seen[5]) > now then return 'CAPPED' end
  local nth = call('LINDEX', K_recent(p.phone), p.perMinute - 1)
  if nth and num(nth) > now - 60000 then return 'CAPPED' end
  local r = call('HMGET', K_recipient(m[3]), 'dayEnds', 'count')
  local their_day_ends, got = day(r[1], r[2], p.recipientDayEnds)
  if num(m[4]) == 0 then                  -- a second attempt is no second message
    if got >= p.recipientCap then return 'CAPPED' end
    got = got + 1
  end
  call('ZREM', K_queue(p.phone), p.message)
  call('RPUSH', K_outbox(p.session), p.message)
  call('HSET', K_message(p.message), 'place', 'outbox', 'session', p.session, 'handed', now,
       'day', p.day, 'hour', p.hour, 'recipientDay', their_day_ends)
  call('HSET', acc, 'inflight', p.message, 'leaseUntil', p.lease, 'notBefore', p.notBefore, 'burstAt', p.burst,
       'dayCount', sent + 1, 'dayEnds', day_ends, 'epoch', p.epoch + 1)
  call('LPUSH', K_recent(p.phone), now)
  call('LTRIM', K_recent(p.phone), 0, p.perMinute - 1)
  while num(call('LINDEX', K_recent(p.phone), -1)) <= now - 60000 do call('RPOP', K_recent(p.phone)) end
  call('HSET', K_recipient(m[3]), 'account', p.phone, 'count', got, 'dayEnds', their_day_ends)
  call('EXPIRE', K_recipient(m[3]), RECIPIENT_LIFE_S)
  call('ZADD', K_due, p.lease, p.phone)
  wake('outbox:' .. p.session)
  drain_overflow(p.phone, input.room, now)
  return 'OK'
end

local function wait(p)
  drain_overflow(p.phone, input.room, now)
  if p.head ~= cjson.null and (call('ZCARD', K_queue(p.phone)) == 0) ~= (p.head == '') then return 'STALE' end
  if p.at > 0 then call('ZADD', K_due, p.at, p.phone) else call('ZREM', K_due, p.phone) end
  return 'OK'
end

local function defer(p)
  if call('ZREM', K_queue(p.phone), p.message) == 0 then return 'STALE' end
  call('HSET', K_message(p.message), 'place', 'scheduled', 'waitReason', p.reason, 'due', p.at)
  enter_schedule(p.message, p.at)
  call('ZADD', K_due, now, p.phone)
  drain_overflow(p.phone, input.room, now)
  return 'OK'
end

local function recall(p)
  local m = load_message(p.message)
  if not m or m.place ~= 'outbox' then return 'STALE' end
  leave(m.id, 'outbox', p.phone, m.session, now)
  enter_queue(m.id, p.phone, m.priority, m.score, now)
  return 'OK'
end

local MOVES = { hand = hand, wait = wait, defer = defer, recall = recall }

local outcomes = {}
for i, p in ipairs(input.plans) do
  local acc = K_account(p.phone)
  local seen = call('HMGET', acc, 'epoch', 'inflight', 'dayEnds', 'dayCount', 'notBefore')
  local outcome = 'STALE'
  if num(seen[1]) == p.epoch and (p.kind ~= 'hand' or not seen[2]) then outcome = MOVES[p.kind](p, acc, seen) end
  if outcome ~= 'OK' then bring_forward(p.phone, now) end
  call('ZADD', K_spare, 'XX', p.spare, p.phone)
  if p.spare > 0 and p.head == '' and call('ZCARD', K_jobs) > 0 then wake('jobs') end
  outcomes[i] = outcome
end
return outcomes
