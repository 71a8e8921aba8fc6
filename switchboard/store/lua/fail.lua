-- An attempt failed, or its lease ran out: claimed -> queue | scheduled (retry) | dead. Holds the account if told.
--
-- ARGV[1]  JSON { message, phone, attempt, failuresBefore,      the guard: only the current attempt can fail
--                 status (queued | failed | dead | unconfirmed), failures, unknown, retryAt | null,
--                 pausedUntil | null, restrictedUntil | null, kind, error, now, retentionS, statsS }
-- Returns { outcome, status now }: OK | STALE | UNKNOWN (no such message of this worker's account)

local input = cjson.decode(ARGV[1])
local id, now = input.message, input.now

local function given(value) return value ~= nil and value ~= cjson.null end

local m = load_message(id)
if not m or m.account ~= input.phone then return { 'UNKNOWN', '' } end

-- WhatsApp's word about the account holds even if the attempt is over, but only once for each attempt made.
local told = num(call('HGET', K_message(id), 'heldAttempt')) < input.attempt and input.attempt <= num(m.attempts)
if told and (given(input.pausedUntil) or given(input.restrictedUntil)) then
  call('HSET', K_message(id), 'heldAttempt', input.attempt)
end
if told and given(input.pausedUntil) then
  if hold(m.account, 'paused', input.pausedUntil) then
    call('HSET', K_account(m.account), 'pauseReason', input.kind)
  end
  tell_hold(m.account, 'paused', input.kind, now, 'until', input.pausedUntil)
end
if told and given(input.restrictedUntil) then
  hold(m.account, 'restricted', input.restrictedUntil)
  tell_hold(m.account, 'restricted', '', now, 'until', input.restrictedUntil)
end

if m.place ~= 'claimed' or num(m.attempts) ~= input.attempt or num(m.failures) ~= input.failuresBefore then
  return { 'STALE', m.status }
end

leave(id, 'claimed', m.account, m.session, now)
call('HSET', K_message(id), 'status', input.status, 'failures', input.failures, 'error', input.error,
     'unknown', input.unknown and 1 or 0)

local function event(kind)
  emit('message.' .. kind, 'messageId', id, 'sessionId', m.session or '', 'account', m.account, 'at', now,
       'reason', input.kind, 'error', input.error)
end

if input.status == 'queued' and m.batch and call('HGET', K_batch(m.batch), 'cancelled_at') then
  m.place = 'done'                        -- it has left its place above
  cancel(m, now, 'batch cancelled', input.retentionS)
  return { 'OK', 'cancelled' }
elseif input.status == 'queued' then
  enter_queue(id, m.account, m.priority, m.score, now)
elseif input.status == 'failed' then
  call('HSET', K_message(id), 'place', 'scheduled', 'due', input.retryAt, 'waitReason', 'delay')
  enter_schedule(id, input.retryAt)
  event('failed')
else
  call('HSET', K_message(id), 'place', 'dead')
  call('ZADD', K_dead, now, id)
  tally(m, 'failed', 1, input.statsS)
  count_batch(m.batch, input.status, 1)
  event(input.status)
end
return { 'OK', input.status }
