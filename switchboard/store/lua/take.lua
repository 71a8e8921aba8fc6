-- Take the accounts that are due, for one dispatcher to plan. Moves no message.
-- A taken account is due again when the lease ends, should that dispatcher die.
--
-- ARGV  now, lease in ms, limit
-- Returns { the next due moment after these or '', account views… }

local now, lease, limit = num(ARGV[1]), num(ARGV[2]), num(ARGV[3])
local phones = call('ZRANGE', K_due, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, limit)
local views = { '' }
local taken = {}
for i, phone in ipairs(phones) do
  taken[2 * i - 1], taken[2 * i] = now + lease, phone
  views[i + 1] = view_account(phone, now)
end
if #taken > 0 then call('ZADD', K_due, unpack(taken)) end
views[1] = call('ZRANGE', K_due, 0, 0, 'WITHSCORES')[2] or ''
return views
