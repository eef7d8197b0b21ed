-- How many tasks are parked on one page of the fleet. Changes nothing.
-- a: offset, limit
-- Returns OK {parked, phones (looked at)}.
local phones, parked = call('ZRANGE', K.phones(), a.offset, a.offset + a.limit - 1), 0
for _, phone in ipairs(phones) do parked = parked + call('ZCARD', K.parked(phone)) end
return reply('OK', {parked = parked, phones = #phones})
