-- Cancel what has not left: jobs | scheduled | overflow | queue | outbox -> done.
--
-- ARGV  now, room, retentionS, error, phone ('' for any account), messageId…
-- Returns one of OK | LEFT:<status> | UNKNOWN for each message

local now, room, retention_s, error_, phone = num(ARGV[1]), num(ARGV[2]), num(ARGV[3]), ARGV[4], ARGV[5]
local WAITS = { jobs = true, scheduled = true, overflow = true, queue = true, outbox = true }

local outcomes = {}
for i = 6, #ARGV do
  local m = load_message(ARGV[i])
  local outcome = 'OK'
  if not m or (phone ~= '' and m.account ~= phone) then outcome = 'UNKNOWN'
  elseif not WAITS[m.place] then outcome = 'LEFT:' .. m.status
  else
    cancel(m, now, error_, retention_s)
    if m.account then drain_overflow(m.account, room, now) end
  end
  outcomes[i - 5] = outcome
end
return outcomes
