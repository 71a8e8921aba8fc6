-- An event of a worker has had its effect: remember that, and keep it for the session's page. With a text to pass on,
-- this is its whole effect: told to everyone who listens, exactly once.
--
-- A worker numbers its events within a stream (its journal), from 1. All up to the stream's floor are known; what came
-- early waits in `seen`. A new stream means a new journal; those before it can bring no more news about the state.
--
-- ARGV  sessionId, stream or '', sequence or '', mark, about its state (0|1), when it happened, now, type,
--       data to keep or '' (not kept), event to tell or '', field, value…
-- Returns 1, or 0 if it was told before

local SEEN_KEPT, STREAMS_KEPT = 256, 4

local session, stream, sequence, mark, now = ARGV[1], ARGV[2], num(ARGV[3]), ARGV[4], num(ARGV[7])
local key, seen, numbered = K_session(session), K_seen(session), ARGV[3] ~= ''
if call('EXISTS', key) == 0 then return 0 end
local s = call('HMGET', key, 'stream', 'floor:' .. stream, 'stateSequence', 'stateAt', 'streams')
local current, floor, old = s[1], num(s[2]), s[5] or ''
if (numbered and sequence <= floor) or call('ZSCORE', seen, mark) then return 0 end

if numbered and stream ~= current and not among(old, stream) then
  local kept = {}
  for name in (current and current .. ',' .. old or ''):gmatch('[^,]+') do
    if #kept < STREAMS_KEPT then kept[#kept + 1] = name else call('HDEL', key, 'floor:' .. name) end
  end
  call('HSET', key, 'stream', stream, 'streams', table.concat(kept, ','))
  call('HDEL', key, 'stateSequence')
  current, s[3] = stream, nil
end

if numbered and sequence == floor + 1 then
  repeat
    floor = floor + 1
  until call('ZREM', seen, stream .. ':' .. whole(floor + 1)) == 0
  call('HSET', key, 'floor:' .. stream, floor)
else
  call('ZADD', seen, now, mark)
  while call('ZCARD', seen) > SEEN_KEPT do
    local name, number = call('ZPOPMIN', seen)[1]:match('^(%w+):(%d+)$')
    if name and num(number) > num(call('HGET', key, 'floor:' .. name)) then
      call('HSET', key, 'floor:' .. name, number)
    end
  end
end
if ARGV[5] == '1' then
  if numbered and stream == current and sequence > num(s[3]) then call('HSET', key, 'stateSequence', sequence) end
  if num(ARGV[6]) > num(s[4]) then call('HSET', key, 'stateAt', ARGV[6]) end
end

if ARGV[9] ~= '' then
  call('XADD', K_session_events(session), 'MAXLEN', '~', SESSION_EVENTS_KEPT, '*',
       'type', ARGV[8], 'at', ARGV[6], 'data', ARGV[9])
end
if ARGV[10] ~= '' then
  local phone = call('HGET', key, 'phone') or ''
  emit(ARGV[10], 'sessionId', session, 'account', phone, 'at', ARGV[6], unpack(ARGV, 11))
end
return 1
