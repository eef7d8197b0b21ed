-- Registers a session of a phone. The phone is as old as the oldest of its sessions.
-- a: session, phone, driver, createdAt, timezone?, tags (JSON), limit (sessions per phone), now
-- Returns OK | EXISTS (the same session and phone) | TAKEN (the id belongs to another phone) | PHONE_FULL.
local key = K.session(a.session)
local owner = call('HGET', key, 'phone')
if owner then return reply(owner == a.phone and 'EXISTS' or 'TAKEN') end
if call('SCARD', K.phone_sessions(a.phone)) >= a.limit then return reply('PHONE_FULL') end
call('HSET', key, 'phone', a.phone, 'driver', a.driver, 'createdAt', a.createdAt, 'tags', a.tags, 'desired', 'running',
  'connection', 'STARTING', 'authorisation', 'UNLINKED', 'registeredAt', a.now, 'epoch', 0)
call('SET', K.session_status(a.session), 'STARTING')
call('SADD', K.sessions(), a.session)
call('SADD', K.phone_sessions(a.phone), a.session)
call('ZADD', K.phones(), 'NX', a.now, a.phone)
local oldest = tonumber(call('HGET', K.phone(a.phone), 'createdAt') or nil)
if not oldest or a.createdAt < oldest then call('HSET', K.phone(a.phone), 'createdAt', a.createdAt) end
if a.timezone then call('HSET', K.phone(a.phone), 'timezone', a.timezone) end
wake('jobs')
return reply('OK')
