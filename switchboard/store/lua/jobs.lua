-- Look at what waits for a sender. Moves nothing.
--
-- ARGV  now, how many jobs, how many candidates
-- Returns { [ [id, to, known account or ''] ], [ account views with the most spare allowance ] }

local now = num(ARGV[1])
local jobs, candidates = {}, {}
for i, id in ipairs(call('ZRANGE', K_jobs, 0, num(ARGV[2]) - 1)) do
  local to = call('HGET', K_message(id), 'to')
  jobs[i] = { id, to, known_sender(to) or '' }
end
if #jobs > 0 then
  for i, phone in ipairs(call('ZRANGE', K_spare, 0, num(ARGV[3]) - 1, 'REV')) do
    candidates[i] = view_account(phone, now)
  end
end
return { jobs, candidates }
