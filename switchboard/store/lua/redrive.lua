-- A person decides on a dead letter: dead -> queue | jobs (under the same WhatsApp id), or dead -> done.
--
-- ARGV  messageId, what (retry | discard), now, room, retentionS
-- Returns { outcome, status }: OK | UNKNOWN | NOT_DEAD | OPTED_OUT | QUEUE_FULL

local id, what, now, room, retention_s = ARGV[1], ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5])

local m = load_message(id)
if not m then return { 'UNKNOWN', '' } end
if m.place ~= 'dead' then return { 'NOT_DEAD', m.status } end

if what == 'discard' then
  leave(id, 'dead', m.account, m.session, now)
  call('HSET', K_message(id), 'place', 'done')
  call('EXPIRE', K_message(id), retention_s)
  count_batch(m.batch, 'discarded', 1)
  close_row(m.batch, retention_s)
  emit('message.discarded', 'messageId', id, 'account', m.account or '', 'at', now)
  return { 'OK', m.status }
end

if call('SISMEMBER', K_suppressions, m.to) == 1 then return { 'OPTED_OUT', m.to } end
if m.account and call('ZCARD', K_queue(m.account)) >= room then return { 'QUEUE_FULL', m.status } end
leave(id, 'dead', m.account, m.session, now)
call('HSET', K_message(id), 'failures', 0)
call('HDEL', K_message(id), 'error', 'score')
count_batch(m.batch, m.status, -1)
enter_queue(id, m.account, m.priority, nil, now)
emit('message.redriven', 'messageId', id, 'account', m.account, 'at', now)
return { 'OK', 'queued' }
