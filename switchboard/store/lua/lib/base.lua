-- Words that every move uses: numbers, wake-ups, events. Moments are ms since the epoch, always passed in:
-- no script asks the server for the time.

local RECIPIENT_LIFE_S = 180 * 86400
local EVENTS_KEPT = 10000
local SLIVER = 1 / 4096               -- of a millisecond, exact in a double until 2039
local PRIORITY_BAND = 1e13            -- scores: (4 - priority) * band + sequence, exact in a double

local call = redis.call

local function num(value) return tonumber(value or 0) or 0 end

local function whole(number) return string.format('%.0f', number) end

local function wake(topic) call('PUBLISH', K_wake, topic) end

local function emit(kind, ...)
  call('XADD', K_events, 'MAXLEN', '~', EVENTS_KEPT, '*', 'type', kind, ...)
end

-- Look at this account no later than `at`. Wakes a dispatcher when that is the next thing due.
local function bring_forward(phone, at)
  call('ZADD', K_due, 'LT', at, phone)
  if call('ZRANGE', K_due, 0, 0)[1] == phone then wake('dispatch') end
end
