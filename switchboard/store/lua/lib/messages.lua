-- A message as a table, where it is listed, its end, and the figures it is counted in.

-- Into the index, in the order of the rows and after the `before` others of the same moment; and a batch's into its
-- list. A thousand at a time: every call costs.
local function enlist(rows, batch, now, before)
  for first = 1, #rows, 1000 do
    local ids, entries = {}, {}
    for i = first, math.min(first + 999, #rows) do
      local id = rows[i][1]
      ids[#ids + 1] = id
      entries[#entries + 1], entries[#entries + 2] = now + (before + i - 1) * SLIVER, id
    end
    call('ZADD', K_messages, unpack(entries))
    if batch then call('RPUSH', K_batch_rows(batch), unpack(ids)) end
  end
  if batch then call('ZADD', K_batches, now, batch) end
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
