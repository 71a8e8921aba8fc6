-- Was this event of a worker told before, and is it still news? Changes nothing: see keep.lua.
--
-- ARGV  sessionId, stream or '', sequence or '', mark, about its state (0|1), when it happened
-- Returns 'NEW', 'TWICE' or 'LATE' (about the state, and a later one is known)

local key, stream, sequence, state = K_session(ARGV[1]), ARGV[2], ARGV[3], ARGV[5] == '1'
if call('ZSCORE', K_seen(ARGV[1]), ARGV[4]) then return 'TWICE' end
local s = call('HMGET', key, 'stream', 'floor', 'stateSequence', 'stateAt', 'streams')
if sequence == '' then return state and num(ARGV[6]) < num(s[4]) and 'LATE' or 'NEW' end
if stream ~= s[1] then return state and among(s[5] or '', stream) and 'LATE' or 'NEW' end
if num(sequence) <= num(s[2]) then return 'TWICE' end
return state and num(sequence) < num(s[3]) and 'LATE' or 'NEW'
