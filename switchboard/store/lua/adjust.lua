-- Change what an account's plan depends on, and have it planned anew.
--
-- ARGV  phone, now, bump the revision (0|1), field, value, field, value…    (an empty value removes the field)
--       dayEnds is only ever put off, and only while a day is being counted: a new zone brings no second allowance
-- Returns 1, or 0 if there is no such account

local phone, now = ARGV[1], num(ARGV[2])
local acc = K_account(phone)
local HOLDS = { paused = 'by_request', restricted = '' }      -- and the reason that is told
local resumed = false
if call('EXISTS', acc) == 0 then return 0 end
for i = 4, #ARGV, 2 do
  if ARGV[i] == 'dayEnds' then
    local ends = num(call('HGET', acc, 'dayEnds'))
    if ends > now and num(ARGV[i + 1]) > ends then call('HSET', acc, 'dayEnds', ARGV[i + 1]) end
  elseif ARGV[i + 1] == '' then
    if call('HDEL', acc, ARGV[i]) == 1 and HOLDS[ARGV[i]] then resumed = true end
  else
    call('HSET', acc, ARGV[i], ARGV[i + 1])
    local reason = HOLDS[ARGV[i]]
    if reason then tell_hold(phone, ARGV[i], reason, now, 'until', ARGV[i + 1]) end
  end
end
if resumed then tell_hold(phone, 'resumed', 'by_request', now) end
if ARGV[3] == '1' then call('HINCRBY', acc, 'rev', 1) end
call('HINCRBY', acc, 'epoch', 1)
if call('HEXISTS', acc, 'inflight') == 0 then bring_forward(phone, now) end
return 1
