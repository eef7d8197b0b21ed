-- A page of the fleet: the facts of each phone and the lengths of its queues. Changes nothing.
-- a: offset, limit
-- Returns OK {phones? [{facts, queued [p1, p2, p3], parked}]}.
local found = {}
for _, phone in ipairs(call('ZRANGE', K.phones(), a.offset, a.offset + a.limit - 1)) do
  local queued = {}
  for priority = 1, 3 do queued[priority] = call('LLEN', queue_key(phone, priority)) end
  found[#found + 1] = {facts = phone_facts(phone), queued = queued, parked = call('ZCARD', K.parked(phone))}
end
return reply('OK', {phones = list(found)})
