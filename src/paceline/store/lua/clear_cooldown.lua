-- Ends the cool-down of a session's phone early. What the platform laid on it and a quarantine stay: they are not ours to lift.
-- a: session, by, now
-- Returns OK {phone, changed} | UNKNOWN_SESSION.
local phone = phone_of(a.session)
if not phone then return reply('UNKNOWN_SESSION') end
local cooldown = tonumber(call('HGET', K.phone(phone), 'cooldownUntil') or '0')
if cooldown <= a.now then return reply('OK', {phone = phone, changed = false}) end
call('HDEL', K.phone(phone), 'cooldownUntil')
tell('session.restriction', a.now, 's', a.session, 'phone', phone, 'kind', 'NONE', 'was', 'COOLDOWN')
incident('COOLDOWN_CLEARED', a.now, {phone = phone, sessionId = a.session, by = a.by, ['until'] = cooldown})
audit('OPERATOR', a.now, {action = 'clear_cooldown', phone = phone, sessionId = a.session, by = a.by})
rescan(phone, a.now)
jobs_look_again(a.now)
return reply('OK', {phone = phone, changed = true})
