-- Looks at a phone as the dispatcher would, and changes nothing.
-- a: phone, now, heads (tasks looked at)
-- Returns OK {row, heads?, more, globalFreeAt, queued [p1, p2, p3], parked} | UNKNOWN_PHONE.
if not call('ZSCORE', K.phones(), a.phone) then return reply('UNKNOWN_PHONE') end
local row, queued = phone_row(a.phone), {}
local heads, more = head_rows(a.phone, a.heads, a.now, is_restricted(a.phone, a.now))
for priority = 1, 3 do queued[priority] = call('LLEN', queue_key(a.phone, priority)) end
return reply('OK', {
  row = row, heads = list(heads), more = more, globalFreeAt = fleet_free_at(a.phone, a.now), queued = queued, parked = call('ZCARD', K.parked(a.phone)),
})
