-- A number that should be there has been away for long, or is back. Each is told once.
-- a: session, down (boolean), reason?, now
-- Returns OK {changed} | UNKNOWN_SESSION.
local key = K.session(a.session)
local known = call('HMGET', key, 'phone', 'downTold', 'downSince')
local phone = known[1]
if not phone then return reply('UNKNOWN_SESSION') end
if a.down then
  if known[2] == '1' then return reply('OK', {changed = false}) end
  call('HSET', key, 'downTold', 1)
  incident('SESSION_DOWN', a.now, {sessionId = a.session, phone = phone, reason = a.reason, since = tonumber(known[3] or nil)})
else
  -- Away, failed or waiting: whatever was told of it is over.
  if call('HDEL', key, 'downTold', 'troubleTold') == 0 then return reply('OK', {changed = false}) end
  incident('SESSION_UP', a.now, {sessionId = a.session, phone = phone})
end
return reply('OK', {changed = true})
