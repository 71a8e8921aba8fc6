-- How many messages wait, by place. Moves nothing.
--
-- Returns { in queues of accounts, scheduled, jobs, dead letters }

local queued = 0
for _, phone in ipairs(call('SMEMBERS', K_accounts)) do
  queued = queued + call('ZCARD', K_queue(phone)) + call('ZCARD', K_overflow(phone))
end
return { queued, call('ZCARD', K_scheduled), call('ZCARD', K_jobs), call('ZCARD', K_dead) }
