-- Makes phones that wait for a later look due now, one page of them: something changed that holds for the whole fleet.
-- a: now, limit
-- Returns OK {more}. A look that is under way may have seen the fleet as it was, so it is void.
local phones = call('ZREVRANGEBYSCORE', K.due(), '+inf', '(' .. ms(a.now), 'LIMIT', 0, a.limit)
for _, phone in ipairs(phones) do
  -- One that cannot be read is found out by the look.
  pcall(function() put_pace(phone, pace_of(phone)) end)
  call('ZADD', K.due(), a.now, phone)
end
wake('due')
return reply('OK', {more = #phones == a.limit})
