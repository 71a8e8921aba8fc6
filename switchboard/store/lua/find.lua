-- One step of a walk through an index, newest first, or through the rows of a batch in their order. Moves no message;
-- entries of what is gone leave the index when they are met.
--
-- ARGV[1]  JSON { index: messages | batches, rows: batchId or '', after: where the walk stands or '',
--                 step: how many to look at, wanted: how many to find,
--                 among: { field: [the values it may have] }, holding: { field: a part of its value } }
-- Returns { 1 if the walk is at its end; where it stands; [found id, where that is…] }
--   A stand is <score>_<id> in an index, <how many rows before>_<id> in a batch.

local input = cjson.decode(ARGV[1])
local index = input.index == 'batches' and K_batches or K_messages
local of = input.index == 'batches' and K_batch or K_message
local place, last = string.match(input.after, '^([^_]*)_(.*)$')

-- How many stand before the walk goes on. One that is gone meanwhile is put back for a moment, to see where it stood.
local function passed()
  if not place then return 0 end
  local rank = call('ZREVRANK', index, last)
  if rank then return rank + 1 end
  call('ZADD', index, place, last)
  rank = call('ZREVRANK', index, last)
  call('ZREM', index, last)
  return rank
end

local in_batch = input.rows ~= ''
local first = in_batch and math.floor(num(place)) or passed()
local final = whole(first + input.step - 1)
local ids = in_batch and call('LRANGE', K_batch_rows(input.rows), whole(first), final)
         or call('ZRANGE', index, whole(first), final, 'REV')

local function stand_of(i)
  if i == 0 then return input.after end
  return (in_batch and whole(first + i) or call('ZSCORE', index, ids[i])) .. '_' .. ids[i]
end

local fields, checks = { 'created' }, {}       -- whatever is there was created
for field, values in pairs(input.among) do
  local allowed = {}
  for _, value in ipairs(values) do allowed[value] = true end
  fields[#fields + 1] = field
  checks[#fields] = function(value) return allowed[value] end
end
for field, part in pairs(input.holding) do
  fields[#fields + 1] = field
  checks[#fields] = function(value) return value and string.find(value, part, 1, true) end
end

local function matches(values)
  for i, check in pairs(checks) do
    if not check(values[i]) then return false end
  end
  return true
end

local found, gone = {}, {}
for i, id in ipairs(ids) do
  local values = call('HMGET', of(id), unpack(fields))
  if not values[1] then
    gone[#gone + 1] = id
  elseif matches(values) then
    found[#found + 1] = id
    found[#found + 1] = stand_of(i)
    if #found == 2 * input.wanted then break end
  end
end
local stand = stand_of(#ids)
if #gone > 0 and not in_batch then call('ZREM', index, unpack(gone)) end
return { #ids < input.step and 1 or 0, stand, found }
