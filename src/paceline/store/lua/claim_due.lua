-- Takes due phones under a short lease. It names this look: hand_off refuses if anybody looked later.
-- a: now, lease (ms), limit (phones)
-- Returns {OK, nextAt or nil, {paused, stopped}, [phone, when it was due, phone, …]} | {STOPPED}, as a plain reply.

-- An operator stopped the dispatchers; `/start` wakes them.
if fleet_flags()[2] == '1' then return {'STOPPED'} end
local due = call('ZRANGEBYSCORE', K.due(), '-inf', ms(a.now), 'WITHSCORES', 'LIMIT', '0', whole(a.limit))
local leases, until_ms = {}, ms(a.now + a.lease)
for at = 1, #due, 2 do leases[at], leases[at + 1] = until_ms, due[at] end
-- Before anybody looks at them: a phone that cannot be read must not stand at the head for ever, with all others behind it.
if #leases > 0 then call('ZADD', K.due(), unpack(leases)) end
local next_at = call('ZRANGE', K.due(), '0', '0', 'WITHSCORES')[2]
return {'OK', tonumber(next_at or nil) or false, fleet_flags(), due}
