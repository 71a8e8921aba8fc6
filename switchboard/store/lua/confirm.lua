-- WhatsApp has it, the phone has it, or it was read: any place -> done. Status only moves forward.
-- A late acknowledgement or receipt settles a message wherever it waits, the dead letters included.
--
-- ARGV  messageId, sessionId of the worker, status (sent | delivered | read), at, now, retentionS, statsS
-- Returns { outcome, status now }: OK | ALREADY | UNKNOWN (no such message of this worker's account)

local id, session, status = ARGV[1], ARGV[2], ARGV[3]
local at, now, retention_s, stats_s = num(ARGV[4]), num(ARGV[5]), num(ARGV[6]), num(ARGV[7])
local RANK = { sent = 1, delivered = 2, read = 3 }

local m = load_message(id)
if not m or not m.account or m.account ~= call('HGET', K_session(session), 'phone') then
  return { 'UNKNOWN', '' }
end
if (RANK[m.status] or 0) >= RANK[status] then return { 'ALREADY', m.status } end
if num(m.attempts) == 0 then return { 'UNKNOWN', m.status } end   -- it never left: this worker lies

local function event(kind)
  emit('message.' .. kind, 'messageId', id, 'sessionId', m.session or '', 'account', m.account, 'at', whole(at))
end

local function settle_sent()
  if m.place ~= 'done' or m.status == 'cancelled' then
    if m.place == 'dead' then
      tally(m, 'failed', -1, stats_s)
      count_batch(m.batch, m.status, -1)
    elseif m.status == 'cancelled' then
      count_batch(m.batch, 'cancelled', -1)
    end
    leave(id, m.place, m.account, m.session, now)
  elseif m.status == 'dead' or m.status == 'unconfirmed' then   -- a discarded dead letter
    tally(m, 'failed', -1, stats_s)
    count_batch(m.batch, m.status, -1)
    count_batch(m.batch, 'discarded', -1)
  end
  m.sentAt = whole(at)
  call('HSET', K_message(id), 'place', 'done', 'status', 'sent', 'sentAt', m.sentAt)
  if num(m.attempts) > 1 or m.place ~= 'claimed' then call('HDEL', K_message(id), 'error', 'due', 'waitReason') end
  tally(m, 'sent', 1, stats_s)
  count_batch(m.batch, 'sent', 1)
  event('sent')
end

-- WhatsApp counts in whole seconds: what comes next is not shown as if it had come before.
local function settle_delivered()
  at = math.max(at, num(m.sentAt))
  m.deliveredAt = whole(at)
  call('HSET', K_message(id), 'deliveredAt', m.deliveredAt)
  tally(m, 'delivered', 1, stats_s)
  if m.day then tally_delivery(m, math.floor(at - num(m.sentAt))) end
  count_batch(m.batch, 'delivered', 1)
  event('delivered')
end

if not RANK[m.status] then settle_sent() end
if RANK[status] >= 2 and (RANK[m.status] or 0) < 2 then settle_delivered() end
if status == 'read' then
  at = math.max(at, num(m.deliveredAt))
  call('HSET', K_message(id), 'readAt', whole(at))
  tally(m, 'read', 1, stats_s)
  count_batch(m.batch, 'read', 1)
  event('read')
end
if status ~= 'sent' then call('HSET', K_message(id), 'status', status) end
call('EXPIRE', K_message(id), retention_s)
close_row(m.batch, retention_s)
return { 'OK', status }
