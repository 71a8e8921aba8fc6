-- A look at many accounts, each without the messages it is busy with. Moves nothing.
--
-- ARGV  now, phone…
-- Returns the account views of those that exist

local views = {}
for i = 2, #ARGV do
  if call('EXISTS', K_account(ARGV[i])) == 1 then views[#views + 1] = view_account(ARGV[i], num(ARGV[1]), true) end
end
return views
