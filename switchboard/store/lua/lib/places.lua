-- Into a place, and out of whichever place a message is in. A script that calls leave() must enter another place.

-- Into an account's queue: at the end of its priority, or at its old place when it has a score already.
local function enter_queue(id, phone, priority, score, now)
  if not score or score == '' then
    score = whole((4 - num(priority)) * PRIORITY_BAND + call('HINCRBY', K_account(phone), 'seq', 1))
  end
  call('ZADD', K_queue(phone), score, id)
  call('HSET', K_message(id), 'place', 'queue', 'status', 'queued', 'account', phone, 'score', score)
  if call('ZCARD', K_queue(phone)) == 1 then bring_forward(phone, now) end
end

-- The account that writes to this recipient, while it still has a session.
local function known_sender(to)
  local phone = call('HGET', K_recipient(to), 'account')
  return phone and call('SCARD', K_account_sessions(phone)) > 0 and phone or nil
end

local function enter_jobs(id, priority)
  local score = whole((4 - num(priority)) * PRIORITY_BAND + call('INCR', K_jobs_seq))
  call('ZADD', K_jobs, score, id)
  call('HSET', K_message(id), 'place', 'jobs', 'status', 'queued')
  wake('jobs')
end

-- Moments that tie keep the order they came in: each takes the next free sliver of its millisecond, and what
-- a full millisecond can't hold goes into the following one. A row that follows another one, at `before`, only
-- has to come after that. Returns the moment it got.
local function enter_schedule(id, at, before)
  local ms = math.floor(at)
  if before then at = math.max(at, before + SLIVER) end
  while not before do
    local last = call('ZRANGE', K_scheduled, '(' .. whole(ms + 1), whole(ms), 'BYSCORE', 'REV', 'LIMIT', 0, 1,
                      'WITHSCORES')[2]
    if last then at = math.max(at, num(last) + SLIVER) end
    if at < ms + 1 then break end
    ms = ms + 1
    at = ms
  end
  call('ZADD', K_scheduled, at, id)
  if call('ZRANGE', K_scheduled, 0, 0)[1] == id then wake('dispatch') end
  return at
end

local function enter_overflow(id, phone)
  call('ZADD', K_overflow(phone), call('HINCRBY', K_account(phone), 'seq', 1), id)
  call('HSET', K_message(id), 'place', 'overflow', 'account', phone)
end

-- Due messages that found no room move up as room appears.
local function drain_overflow(phone, room, now)
  local overflow = K_overflow(phone)
  while call('ZCARD', overflow) > 0 and call('ZCARD', K_queue(phone)) < room do
    local id = call('ZPOPMIN', overflow)[1]
    enter_queue(id, phone, call('HGET', K_message(id), 'priority'), nil, now)
  end
end

-- The account's message in flight is settled: it may send again once its delay is over.
local function free_account(phone, now)
  local acc = K_account(phone)
  call('HDEL', acc, 'inflight', 'claimed', 'leaseUntil')
  call('HINCRBY', acc, 'epoch', 1)
  local at = math.max(now, num(call('HGET', acc, 'notBefore')))
  call('ZADD', K_due, at, phone)
  if call('ZRANGE', K_due, 0, 0)[1] == phone then wake('dispatch') end
end

-- A message that was handed over and provably never left counts for nothing on the days it was counted on.
local function refund(id, phone, now)
  local acc = K_account(phone)
  local m = call('HMGET', K_message(id), 'handed', 'to', 'attempts', 'recipientDay')
  local day = call('HMGET', acc, 'dayEnds', 'dayCount')
  if now < num(day[1]) and num(day[2]) > 0 then call('HINCRBY', acc, 'dayCount', -1) end
  call('LREM', K_recent(phone), 1, m[1])
  local r = call('HMGET', K_recipient(m[2]), 'dayEnds', 'count')
  if num(m[3]) == 0 and num(r[1]) == num(m[4]) and num(r[2]) > 0 then
    call('HINCRBY', K_recipient(m[2]), 'count', -1)
  end
end

-- Out of whichever place it is in. After this it must enter another one within the same script.
local function leave(id, place, phone, session, now)
  if place == 'queue' then
    call('ZREM', K_queue(phone), id)
    if call('ZCARD', K_queue(phone)) == 0 then bring_forward(phone, now) end
  elseif place == 'scheduled' then call('ZREM', K_scheduled, id)
  elseif place == 'overflow' then call('ZREM', K_overflow(phone), id)
  elseif place == 'jobs' then call('ZREM', K_jobs, id)
  elseif place == 'dead' then call('ZREM', K_dead, id)
  elseif place == 'claimed' then free_account(phone, now)
  elseif place == 'outbox' then
    call('LREM', K_outbox(session), 1, id)
    refund(id, phone, now)
    free_account(phone, now)
  end
end

-- A session can't send for this account any more. What it was handed and had not claimed goes back, uncounted.
local function detach(session, phone, now)
  call('SREM', K_connected(phone), session)
  call('HINCRBY', K_account(phone), 'epoch', 1)
  if call('SCARD', K_connected(phone)) == 0 then call('ZREM', K_spare, phone) end
  local id = call('LINDEX', K_outbox(session), 0)
  if id then
    local m = call('HMGET', K_message(id), 'priority', 'score')
    leave(id, 'outbox', phone, session, now)
    enter_queue(id, phone, m[1], m[2], now)
  end
  bring_forward(phone, now)
end
