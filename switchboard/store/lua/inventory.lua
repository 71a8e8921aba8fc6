-- How many more sessions the pool can take. Told when it becomes too few, and when it is enough again.
--
-- ARGV  free places, all places, how many are few, now
-- Returns 1 if that is news, else 0

local free, low = num(ARGV[1]), num(ARGV[1]) < num(ARGV[3])
if low and call('SET', K_low, 1, 'NX') then
  emit('inventory.low', 'free', free, 'capacity', ARGV[2], 'at', ARGV[4])
  return 1
end
if not low and call('DEL', K_low) == 1 then
  emit('inventory.enough', 'free', free, 'capacity', ARGV[2], 'at', ARGV[4])
  return 1
end
return 0
