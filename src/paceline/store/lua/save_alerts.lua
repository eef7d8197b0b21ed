-- Keeps how far the alerts have read and what they remember, in one step; only for whoever holds the lease, which goes on.
-- a: holder, cursor, memory (JSON), now, ttl (ms)
-- Returns OK | LOST (another one has it: what was decided here is void).
if call('HGET', K.lease('alerts'), 'holder') ~= a.holder then return reply('LOST') end
call('HSET', K.lease('alerts'), 'until', a.now + a.ttl)
call('HSET', K.alerts(), 'cursor', a.cursor, 'memory', a.memory)
return reply('OK')
