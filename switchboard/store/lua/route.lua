-- Give messages the sender that was chosen for them: jobs -> queue | overflow. The choice is sticky: where the
-- recipient got a sender since the choice was made, even by the message before, that one stays.
--
-- ARGV[1]  JSON { now, room, choices: [ [messageId, phone] ] }
-- Returns how many were moved; one that another dispatcher routed first is left alone.

local input = cjson.decode(ARGV[1])
local moved = 0
for _, choice in ipairs(input.choices) do
  local id, phone = choice[1], choice[2]
  if call('ZREM', K_jobs, id) == 1 then
    local m = call('HMGET', K_message(id), 'priority', 'to')
    phone = known_sender(m[2]) or phone
    call('HSET', K_recipient(m[2]), 'account', phone)
    call('EXPIRE', K_recipient(m[2]), RECIPIENT_LIFE_S)
    if call('ZCARD', K_queue(phone)) >= input.room then
      enter_overflow(id, phone)
    else
      enter_queue(id, phone, m[1], nil, input.now)
    end
    call('ZADD', K_spare, 'XX', 'INCR', -1, phone)
    moved = moved + 1
  end
end
return moved
