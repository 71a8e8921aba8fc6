-- Let go of what is due: scheduled -> queue | overflow | jobs, or -> done where its batch was cancelled.
--
-- ARGV  now, limit, room, burstMs, retentionS
-- Returns { released, the next due moment or '' }

local now, limit, room = num(ARGV[1]), num(ARGV[2]), num(ARGV[3])
local burst_ms, retention_s = num(ARGV[4]), num(ARGV[5])

local function release(id)
  local m = load_message(id)
  call('ZREM', K_scheduled, id)
  if not m then return end
  call('HDEL', K_message(id), 'waitReason', 'due')
  if m.batch and call('HGET', K_batch(m.batch), 'cancelled_at') then
    m.place = 'done'
    cancel(m, now, 'batch cancelled', retention_s)
  elseif not m.account then
    enter_jobs(id, m.priority)
  elseif m.score then                     -- a retry, or one that waited for its recipient: its old place
    enter_queue(id, m.account, m.priority, m.score, now)
  elseif call('ZCARD', K_queue(m.account)) >= room then
    enter_overflow(id, m.account)
  else
    enter_queue(id, m.account, m.priority, nil, now)
    note_arrivals(m.account, 1, num(call('HGET', K_account(m.account), 'burstAt')), burst_ms, now)
  end
end

local due = call('ZRANGE', K_scheduled, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, limit)
for _, id in ipairs(due) do release(id) end
return { #due, call('ZRANGE', K_scheduled, 0, 0, 'WITHSCORES')[2] or '' }
