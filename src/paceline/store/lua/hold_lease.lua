-- One of several services does a piece of work alone, for as long as it says so in time.
-- a: name, holder, now, ttl (ms)
-- Returns OK (taken or kept) | HELD {untilMs} (by somebody else).
local key = K.lease(a.name)
local known = call('HMGET', key, 'holder', 'until')
local ends_at = tonumber(known[2] or '0')
if known[1] and known[1] ~= a.holder and ends_at > a.now then return reply('HELD', {untilMs = ends_at}) end
call('HSET', key, 'holder', a.holder, 'until', a.now + a.ttl)
return reply('OK')
