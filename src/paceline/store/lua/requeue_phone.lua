-- An operator says that a quarantined phone is restored: its queue goes on, on the same phone.
-- a: session, liveness (ms), by, now
-- Returns OK {phone, changed, waiting} | UNKNOWN_SESSION | NOT_RESTORED (no session of the phone is connected; an operator's word alone
-- would only send its messages into a wall).
local phone = phone_of(a.session)
if not phone then return reply('UNKNOWN_SESSION') end
local is_connected = false
for _, id in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do
  local known = call('HMGET', K.session(id), 'connection', 'lastSeen')
  if known[1] == 'CONNECTED' and a.now - tonumber(known[2] or '0') <= a.liveness then is_connected = true end
end
if not is_connected then return reply('NOT_RESTORED') end
local waiting = ahead(phone, 1) + call('ZCARD', K.parked(phone))
local changed = call('HDEL', K.phone(phone), 'quarantined') == 1
if changed then
  local pace = pace_of(phone)
  pace.waitReason, pace.waitUntil = '', ''
  tell('session.restriction', a.now, 's', a.session, 'phone', phone, 'kind', 'NONE', 'was', 'QUARANTINED')
  incident('QUEUE_REQUEUED', a.now, {phone = phone, sessionId = a.session, by = a.by, waiting = waiting})
  audit('OPERATOR', a.now, {action = 'requeue_phone', phone = phone, sessionId = a.session, by = a.by, waiting = waiting})
  rescan(phone, a.now)
  jobs_look_again(a.now)
end
return reply('OK', {phone = phone, changed = changed, waiting = waiting})
