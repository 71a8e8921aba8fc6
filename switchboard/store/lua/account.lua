-- One consistent look at the account of a session or phone. Moves nothing.
--
-- ARGV  sessionId or '', phone or '', now
-- Returns { 'NOT_FOUND' }, { 'NOT_LINKED' } or { 'OK', account view }

local phone = ARGV[2]
if ARGV[1] ~= '' then
  local s = call('HMGET', K_session(ARGV[1]), 'status', 'phone')
  if not s[1] then return { 'NOT_FOUND' } end
  if not s[2] then return { 'NOT_LINKED' } end
  phone = s[2]
end
if call('EXISTS', K_account(phone)) == 0 then return { 'NOT_FOUND' } end
return { 'OK', view_account(phone, num(ARGV[3])) }
