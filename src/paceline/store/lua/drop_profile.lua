-- Takes a profile out of the pool, if no session has it.
-- a: profile (its id), by, now
-- Returns OK | UNKNOWN_PROFILE | IN_USE {sessions}.
local owner = call('HMGET', K.profile(a.profile), 'line', 'session')
if not owner[1] then return reply('UNKNOWN_PROFILE') end
if owner[2] then return reply('IN_USE', {sessions = {owner[2]}}) end
call('DEL', K.profile(a.profile))
call('SREM', K.profiles_available(), a.profile)
call('ZREM', K.profiles_numbers(), a.profile)
call('ZREM', K.profiles_free(), a.profile)
audit('OPERATOR', a.now, {action = 'PROFILE_REMOVED', by = a.by, profile = a.profile})
return reply('OK')
