-- Change what an account's plan depends on, and have it planned anew.
--
-- ARGV  phone, now, bump the revision (0|1), field, value, field, value…    (an empty value removes the field)
--       dayEnds is only ever put off, and only while a day is being counted: a new zone brings no second allowance
-- Returns 1, or 0 if there is no such account

local phone, now = ARGV[1], num(ARGV[2])
local acc = K_account(phone)
local HOLDS = { paused = 'account.paused', restricted = 'account.restricted' }
if call('EXISTS', acc) == 0 then return 0 end
for i = 4, #ARGV, 2 do
  if ARGV[i] == 'dayEnds' then
    local ends = num(call('HGET', acc, 'dayEnds'))
    if ends > now and num(ARGV[i + 1]) > ends then call('HSET', acc, 'dayEnds', ARGV[i + 1]) end
  elseif ARGV[i + 1] == '' then
    if call('HDEL', acc, ARGV[i]) == 1 and HOLDS[ARGV[i]] then emit('account.resumed', 'account', phone, 'at', now) end
  else
    call('HSET', acc, ARGV[i], ARGV[i + 1])
    if HOLDS[ARGV[i]] then emit(HOLDS[ARGV[i]], 'account', phone, 'at', now, 'until', ARGV[i + 1]) end
  end
end
if ARGV[3] == '1' then call('HINCRBY', acc, 'rev', 1) end
call('HINCRBY', acc, 'epoch', 1)
if call('HEXISTS', acc, 'inflight') == 0 then bring_forward(phone, now) end
return 1
