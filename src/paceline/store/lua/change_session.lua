-- Changes what an operator may know better: since when a number exists, its timezone, a session's tags.
-- a: session, createdAt?, timezone?, tags? (JSON), by, now
-- Returns OK | UNKNOWN_SESSION | REMOVING. The phone is as old as the oldest of its sessions.
local key = K.session(a.session)
local phone = phone_of(a.session)
if not phone then return reply('UNKNOWN_SESSION') end
if call('HGET', key, 'removing') == '1' then return reply('REMOVING') end
if a.tags then call('HSET', key, 'tags', a.tags) end
if a.timezone then call('HSET', K.phone(phone), 'timezone', a.timezone) end
if a.createdAt then
  call('HSET', key, 'createdAt', a.createdAt)
  local oldest = a.createdAt
  for _, id in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do
    oldest = math.min(oldest, tonumber(call('HGET', K.session(id), 'createdAt') or oldest))
  end
  call('HSET', K.phone(phone), 'createdAt', oldest)
end
-- Pace, cap and hours may be others now.
rescan(phone, a.now)
jobs_look_again(a.now)
audit('OPERATOR', a.now, {
  action = 'change', sessionId = a.session, phone = phone, by = a.by, createdAt = a.createdAt, timezone = a.timezone, tags = a.tags,
})
return reply('OK')
