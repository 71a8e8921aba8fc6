-- One consistent look at a message and its account. Moves nothing.
--
-- ARGV  messageId, now
-- Returns {} or { message as field, value…; position in its queue or 0; account view or {};
--                 how many accounts are connected at all; the recipient's day's end and count }

local id, now = ARGV[1], num(ARGV[2])
local fields = call('HGETALL', K_message(id))
if #fields == 0 then return {} end
local m = load_message(id)
local rank = m.place == 'queue' and call('ZRANK', K_queue(m.account), id)
          or m.place == 'jobs' and call('ZRANK', K_jobs, id)
return { fields, rank and rank + 1 or 0, m.account and view_account(m.account, now) or {},
         call('ZCARD', K_spare), call('HMGET', K_recipient(m.to), 'dayEnds', 'count') }
