-- A worker that is still waiting for the server's ack keeps its lease, up to a limit from the claim on.
-- a: session, epoch, task, token, now, lease (ms), longest (ms)
-- Returns OK {leaseUntil} | STALE (not its task, token or epoch any more).
local key = K.message(a.task)
local about = message_of(a.task)
if about.sessionId ~= a.session then return reply('STALE') end
if not is_newest(a.session, a.epoch) or byte_of(a.task) ~= 'c' or tonumber(about.token or '0') ~= a.token then return reply('STALE') end
-- Never shorter than it was: the worker may write until shortly before the end it was told.
local lease_until = math.max(tonumber(about.leaseUntil), math.min(a.now + a.lease, tonumber(about.claimedAt) + a.longest))
call('HSET', key, 'leaseUntil', lease_until)
was_seen(a.session, a.now, 'claimedAt', ms(a.now))
call('ZADD', K.deadlines(), lease_until, a.task)
return reply('OK', {leaseUntil = lease_until})
