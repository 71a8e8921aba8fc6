-- What holds an account or slows it down, and one consistent look at it.

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

-- Hold an account until a moment (-1: until a person says otherwise). A longer hold is never cut short: then false.
local function hold(phone, field, until_)
  local acc = K_account(phone)
  local held = num(call('HGET', acc, field))
  local longer = held ~= -1 and (until_ == -1 or until_ > held)
  if longer then call('HSET', acc, field, until_) end
  call('HINCRBY', acc, 'epoch', 1)
  return longer
end

-- One consistent look at an account: everything a plan depends on. Order as read by store/views.py.
local ACCOUNT = { 'rev', 'epoch', 'first', 'tz', 'overrides', 'paused', 'restricted', 'notBefore', 'dayEnds',
                  'dayCount', 'burstUntil', 'inflight', 'leaseUntil', 'claimed', 'pauseReason' }

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
           call('SMEMBERS', K_connected(phone)), recent, flight, head, a[15] or '' }
end
