-- Looks at a phone as the dispatcher would, and changes nothing.
-- a: phone, now, heads (tasks looked at)
-- Returns OK {facts, queued [p1, p2, p3], parked} | UNKNOWN_PHONE.
if not call('ZSCORE', K.phones(), a.phone) then return reply('UNKNOWN_PHONE') end
local facts, queued = phone_facts(a.phone), {}
facts.heads, facts.globalFreeAt = list(heads_of(a.phone, a.heads, a.now)), fleet_free_at(a.phone, a.now)
for priority = 1, 3 do queued[priority] = call('LLEN', queue_key(a.phone, priority)) end
return reply('OK', {facts = facts, queued = queued, parked = call('ZCARD', K.parked(a.phone))})
