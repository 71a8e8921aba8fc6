-- Was this event of a worker told before, and is it still news? Changes nothing: see keep.lua.
--
-- ARGV  sessionId, stream or '', sequence or '', mark, about its state (0|1), when it happened, now
-- Returns 'NEW', 'TWICE' or 'LATE' (about the state, and a later one is known, or from before the worker's start)

local SKEW = 1000  -- ms that a worker's clock may be behind ours

local key, stream, sequence, state = K_session(ARGV[1]), ARGV[2], ARGV[3], ARGV[5] == '1'
if call('ZSCORE', K_seen(ARGV[1]), ARGV[4]) then return 'TWICE' end
local s = call('HMGET', key, 'stream', 'floor:' .. stream, 'stateSequence', 'stateAt', 'streams', 'startedAt')
if sequence ~= '' and num(sequence) <= num(s[2]) then return 'TWICE' end
if not state then return 'NEW' end
-- A start in the future was noted by a clock that has been set since: it says nothing.
if num(s[6]) <= num(ARGV[7]) + SKEW and num(ARGV[6]) < num(s[6]) - SKEW then return 'LATE' end
if sequence == '' then return num(ARGV[6]) < num(s[4]) and 'LATE' or 'NEW' end
if stream ~= s[1] then return among(s[5] or '', stream) and 'LATE' or 'NEW' end
return num(sequence) < num(s[3]) and 'LATE' or 'NEW'
