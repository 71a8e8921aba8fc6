-- Old entries of an index leave it when what they stand for is gone. One step, from the oldest on.
--
-- ARGV  index (messages | batches), before, skip: how many old ones are known to be there, step
-- Returns { how many were looked at, how many left }

local index = ARGV[1] == 'batches' and K_batches or K_messages
local of = ARGV[1] == 'batches' and K_batch or K_message
local gone = {}
local old = call('ZRANGE', index, '-inf', '(' .. ARGV[2], 'BYSCORE', 'LIMIT', ARGV[3], ARGV[4])
for _, id in ipairs(old) do
  if call('EXISTS', of(id)) == 0 then gone[#gone + 1] = id end
end
if #gone > 0 then call('ZREM', index, unpack(gone)) end
return { #old, #gone }
