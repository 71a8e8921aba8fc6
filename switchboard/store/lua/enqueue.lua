-- Accept messages: nowhere -> jobs | scheduled | queue. Each entry is one request, and is all or nothing.
--
-- ARGV[1]  JSON { now, room, windows: { idempotencyS, burstMs }, entries: [ {
--            rate: [keyId, perMinute] | null, idem: [key, bodyDigest] | null,
--            session | null, phone | null,            neither: the sender is chosen later
--            rev, daily, burst, deferrable,           the guard: computed from revision `rev` of the account
--            batch: [id, spreadMs] | null,
--            rows: [ [id, to, text, priority, due, reference] ]      due 0: now; never before the row above
--          } ] }
-- Returns one array for each entry, its first element the outcome:
--   OK         messageId (of a batch: its id), position (0 if none), scheduled (0|1), account view ([] while unrouted), now
--   REPLAY     the first answer, as JSON
--   STALE      rev, first, tz, overrides, phone: compute anew from these and ask again
--   RATE_LIMITED, CONFLICT, NOT_FOUND, NOT_LINKED, MISMATCH
--   OPTED_OUT  indexes of the rows, from 0
--   DAILY_LIMIT  sent, resetsAt
--   QUEUE_FULL

local input = cjson.decode(ARGV[1])
local now, room, windows = input.now, input.room, input.windows
local accepted = 0                     -- messages, by all entries together

local function null(value) return value == nil or value == cjson.null end

local function over_rate(rate)
  if null(rate) then return false end
  local key = K_rate(rate[1] .. ':' .. whole(math.floor(now / 60000)))
  local calls = call('INCR', key)
  if calls == 1 then call('EXPIRE', key, 120) end
  return calls > rate[2]
end

local function replay(idem)
  if null(idem) then return nil end
  local seen = call('HMGET', K_idempotency(idem[1]), 'body', 'answer')
  if not seen[1] then return nil end
  if seen[1] ~= idem[2] then return { 'CONFLICT' } end
  return { 'REPLAY', seen[2] }
end

-- The account that sends, or an outcome that says why there is none.
local function sender(entry)
  if null(entry.session) and null(entry.phone) then return nil, nil end
  local phone = entry.phone
  if not null(entry.session) then
    local s = call('HMGET', K_session(entry.session), 'status', 'phone')
    if not s[1] then return nil, { 'NOT_FOUND' } end
    if not s[2] then return nil, { 'NOT_LINKED' } end
    if not null(phone) and phone ~= s[2] then return nil, { 'MISMATCH' } end
    phone = s[2]
  end
  local a = call('HMGET', K_account(phone), 'rev', 'first', 'tz', 'overrides')
  if not a[1] then return nil, { 'NOT_FOUND' } end
  if num(a[1]) ~= entry.rev then
    return nil, { 'STALE', a[1], a[2], a[3] or '', a[4] or '', phone }
  end
  return phone, nil
end

local function opted_out(rows)
  if call('SCARD', K_suppressions) == 0 then return nil end
  local found = { 'OPTED_OUT' }
  for i, row in ipairs(rows) do
    if call('SISMEMBER', K_suppressions, row[2]) == 1 then found[#found + 1] = i - 1 end
  end
  return #found > 1 and found or nil
end

-- The day's allowance and the room, for messages that would wait in the queue from now on.
local function no_room(entry, phone)
  local day = call('HMGET', K_account(phone), 'dayEnds', 'dayCount')
  local ends, sent = num(day[1]), num(day[2])
  if now < ends and sent >= entry.daily then
    for _, row in ipairs(entry.rows) do
      if row[5] < ends then
        if not entry.deferrable then return { 'DAILY_LIMIT', whole(sent), whole(ends) } end
        row.asked, row[5] = row[5], ends               -- put off to the next day
      end
    end
  end
  if null(entry.batch) and entry.rows[1][5] <= now and call('ZCARD', K_queue(phone)) >= room then
    return { 'QUEUE_FULL' }
  end
  return nil
end

-- Returns the moment it is scheduled for, if it is; `before` is that of the row it has to follow.
local function write(row, entry, phone, batch, before)
  local id = row[1]
  local fields = { 'to', row[2], 'text', row[3], 'priority', row[4], 'created', now }
  local function set(name, value)
    if not null(value) and value ~= '' then fields[#fields + 1] = name; fields[#fields + 1] = value end
  end
  set('account', phone); set('session', entry.session); set('reference', row[6]); set('batch', batch)
  if row[5] > now or batch then
    local due, asked = math.max(row[5], now), row.asked or row[5]
    set('place', 'scheduled'); set('status', 'scheduled'); set('due', whole(due))
    set('waitReason', row.asked and 'daily_limit' or 'scheduled')
    if asked > now or batch then set('scheduledFor', whole(math.max(asked, now))) end
    call('HSET', K_message(id), unpack(fields))
    return enter_schedule(id, due, before)
  end
  call('HSET', K_message(id), unpack(fields))
  if phone then enter_queue(id, phone, row[4], nil, now) else enter_jobs(id, row[4]) end
end

local function accept(entry, phone)
  local batch = not null(entry.batch) and entry.batch[1] or nil
  local later
  for _, row in ipairs(entry.rows) do later = write(row, entry, phone, batch, later) end
  if batch then
    call('HSET', K_batch(batch), 'total', #entry.rows, 'created', now, 'spreadMs', entry.batch[2],
         'account', phone or '', 'session', not null(entry.session) and entry.session or '')
  end
  enlist(entry.rows, batch, now, accepted)
  accepted = accepted + #entry.rows
  if phone and not later then note_arrivals(phone, #entry.rows, entry.burst, windows.burstMs, now) end
  local last = entry.rows[#entry.rows][1]
  local rank = call('ZRANK', phone and K_queue(phone) or K_jobs, last)
  return { 'OK', batch or last, rank and rank + 1 or 0, later and 1 or 0,
           phone and view_account(phone, now, true) or {}, whole(now) }
end

local function handle(entry)
  local phone, refusal = sender(entry)
  if refusal and refusal[1] == 'STALE' then return refusal end   -- it will be asked again, and counted then
  if over_rate(entry.rate) then return { 'RATE_LIMITED' } end
  local answered = replay(entry.idem)
  if answered then return answered end
  if refusal then return refusal end
  refusal = opted_out(entry.rows) or (phone and no_room(entry, phone))
  if refusal then return refusal end
  local result = accept(entry, phone)
  if not null(entry.idem) then
    local key = K_idempotency(entry.idem[1])
    call('HSET', key, 'body', entry.idem[2], 'answer', cjson.encode(result))
    call('EXPIRE', key, windows.idempotencyS)
  end
  return result
end

local results = {}
for i, entry in ipairs(input.entries) do results[i] = handle(entry) end
return results
