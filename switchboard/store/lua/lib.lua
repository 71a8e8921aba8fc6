-- What the moves share. Put in front of every script, after the key functions made from keys.py.
-- Moments are ms since the epoch, always passed in: no script asks the server for the time.

local RECIPIENT_LIFE_S = 180 * 86400
local EVENTS_KEPT = 10000
local SLIVER = 1 / 4096               -- of a millisecond, exact in a double until 2039
local PRIORITY_BAND = 1e13            -- scores: (4 - priority) * band + sequence, exact in a double

local call = redis.call

local function num(value) return tonumber(value or 0) or 0 end

local function whole(number) return string.format('%.0f', number) end

local function wake(topic) call('PUBLISH', K_wake, topic) end

local function emit(kind, ...)
  call('XADD', K_events, 'MAXLEN', '~', EVENTS_KEPT, '*', 'type', kind, ...)
end

-- Look at this account no later than `at`. Wakes a dispatcher when that is the next thing due.
local function bring_forward(phone, at)
  call('ZADD', K_due, 'LT', at, phone)
  if call('ZRANGE', K_due, 0, 0)[1] == phone then wake('dispatch') end
end

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

-- Counts the arrival; a burst slows the account down for a while and is reported once.
local function note_arrivals(phone, count, threshold, window, now)
  if threshold <= 0 then return end
  local acc = K_account(phone)
  local state = call('HMGET', acc, 'burstMinute', 'burstCount', 'burstUntil')
  local minute = math.floor(now / 60000)
  local seen = count
  if num(state[1]) == minute then seen = seen + num(state[2]) end
  call('HSET', acc, 'burstMinute', minute, 'burstCount', seen)
  if seen > threshold and num(state[3]) <= now then
    call('HSET', acc, 'burstUntil', now + window)
    call('HINCRBY', acc, 'epoch', 1)
    emit('account.burst', 'account', phone, 'at', now, 'queued', seen, 'threshold', threshold)
  end
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

-- Hold an account until a moment (-1: until a person says otherwise). A longer hold is never cut short.
local function hold(phone, field, until_)
  local acc = K_account(phone)
  local held = num(call('HGET', acc, field))
  if held ~= -1 and (until_ == -1 or until_ > held) then call('HSET', acc, field, until_) end
  call('HINCRBY', acc, 'epoch', 1)
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

-- Figures are kept by the hour of the hand-over; a day's are their sum.
local function tally(m, field, by, stats_s)
  if not m.day or not m.session or not m.account then return end
  local scopes = { 'session:' .. m.session, 'account:' .. m.account, 'fleet' }
  for _, scope in ipairs(scopes) do
    local key = K_stats(scope .. ':' .. m.day)
    if call('HINCRBY', key, field .. ':' .. m.hour, by) == by then call('EXPIRE', key, stats_s) end
  end
end

local function tally_delivery(m, ms)
  for _, scope in ipairs({ 'session:' .. m.session, 'account:' .. m.account, 'fleet' }) do
    call('HINCRBY', K_stats(scope .. ':' .. m.day), 'deliveryMs', ms)
  end
end

local function count_batch(batch, field, by)
  if batch and batch ~= '' and call('EXISTS', K_batch(batch)) == 1 then
    call('HINCRBY', K_batch(batch), field, by)
  end
end

-- A row has ended for good. A batch whose rows all have lives as long as they do.
local function close_row(batch, retention_s)
  if not batch or batch == '' then return end
  local b = call('HMGET', K_batch(batch), 'total', 'sent', 'cancelled', 'discarded')
  if b[1] and num(b[1]) == num(b[2]) + num(b[3]) + num(b[4]) then
    call('EXPIRE', K_batch(batch), retention_s)
    call('EXPIRE', K_batch_rows(batch), retention_s)
  end
end

local FIELDS = { 'place', 'status', 'account', 'session', 'batch', 'day', 'hour', 'attempts', 'failures',
                 'sentAt', 'to', 'deliveredAt', 'readAt', 'priority', 'score', 'handed' }

local function load_message(id)
  local values = call('HMGET', K_message(id), unpack(FIELDS))
  if not values[1] then return nil end
  local m = { id = id }
  for i, field in ipairs(FIELDS) do m[field] = values[i] or nil end
  return m
end

local function cancel(m, now, error, retention_s)
  leave(m.id, m.place, m.account, m.session, now)
  call('HSET', K_message(m.id), 'place', 'done', 'status', 'cancelled', 'error', error)
  call('EXPIRE', K_message(m.id), retention_s)
  count_batch(m.batch, 'cancelled', 1)
  close_row(m.batch, retention_s)
  emit('message.cancelled', 'messageId', m.id, 'account', m.account or '', 'at', now)
end

-- One consistent look at an account: everything a plan depends on. Order as read by store/views.py.
local ACCOUNT = { 'rev', 'epoch', 'first', 'tz', 'overrides', 'paused', 'restricted', 'notBefore', 'dayEnds',
                  'dayCount', 'burstUntil', 'inflight', 'leaseUntil', 'claimed' }

-- `briefly`: without the message in flight or at the head, where only the account itself matters.
local function view_account(phone, now, briefly)
  local a = call('HMGET', K_account(phone), unpack(ACCOUNT))
  local recent = {}
  for _, moment in ipairs(call('LRANGE', K_recent(phone), 0, -1)) do
    if num(moment) <= now - 60000 then break end
    recent[#recent + 1] = moment
  end
  local flight, head = {}, {}
  if briefly then
    -- neither
  elseif a[12] then
    local m = call('HMGET', K_message(a[12]), 'attempts', 'failures', 'unknown')
    flight = { a[12], a[13], a[14] or '', m[1] or '0', m[2] or '0', m[3] or '0' }
  else
    local id = call('ZRANGE', K_queue(phone), 0, 0)[1]
    if id then
      local m = call('HMGET', K_message(id), 'to', 'session', 'attempts')
      local r = call('HMGET', K_recipient(m[1] or ''), 'dayEnds', 'count')
      head = { id, m[1], m[2] or '', m[3] or '0', r[1] or '0', r[2] or '0' }
    end
  end
  return { phone, a[1] or '0', a[2] or '0', a[3] or '0', a[4] or '', a[5] or '', a[6] or '0', a[7] or '0',
           a[8] or '0', a[9] or '0', a[10] or '0', a[11] or '0', call('ZCARD', K_queue(phone)),
           call('SMEMBERS', K_connected(phone)), recent, flight, head }
end
