-- Records what a worker said about its session. Late words, of an older moment, of an instance that was replaced or of one that nobody
-- wants any more, and copies of words change nothing about the connection.
-- a: session, event (JSON), now, at (the worker's own time, never later than now), epoch?, word? (its name in that epoch, or in all if there is none), connection?, authorisation?, quarantine? (reason), failed? (reason), alarm?,
--    qr? (a JSON text with `value` and `until`; qrTtl in ms), quietMs? (how long ago its worker last heard WhatsApp)
-- Returns OK {phone} | KNOWN {phone} (a copy) | UNKNOWN_SESSION.
local key = K.session(a.session)
local known = hash(key)
local phone = known.phone
if not phone then return reply('UNKNOWN_SESSION') end
was_seen(a.session, a.now)
if a.quietMs then call('HSET', key, 'heardAt', a.now - a.quietMs) end
if a.event then
  call('LPUSH', K.session_events(a.session), a.event)
  call('LTRIM', K.session_events(a.session), 0, 199)
end
if a.epoch and a.epoch < tonumber(known.epoch or '0') then return reply('OK', {phone = phone}) end
-- What nobody wants to hear now is not remembered: told again, it may count.
local counts = a.connection and not is_unwanted(known, known.instanceId)
if counts and not is_news(a.session, a.epoch, a.word) then return reply('KNOWN', {phone = phone}) end
if counts and a.at >= said_at(known.connectionAt, a.now) then
  put_state(a.session, a.connection, a.authorisation, a.at, a.now)
  if a.connection == 'SCAN_QR' then call('HSET', key, 'healthyAt', a.now) end
  if a.failed then call('HSET', key, 'failedReason', a.failed) else call('HDEL', key, 'failedReason') end
  if a.alarm and known.failedReason ~= a.failed then
    call('HSET', key, 'troubleTold', 1)
    incident('SESSION_FAILED', a.now, {sessionId = a.session, phone = phone, reason = a.failed})
  end
  -- Whoever sees the code can link the number: it is kept here for as long as it is valid, and in no history.
  if a.qr then call('SET', K.session_qr(a.session), a.qr, 'PX', a.qrTtl) end
  if a.connection == 'CONNECTED' then came_up(a.session, phone, a.now) end
end
if a.quarantine and call('HGET', K.phone(phone), 'quarantined') ~= '1' then
  -- With its reason: the message it was busy with may keep the dispatcher from looking at it for a while.
  call('HSET', K.phone(phone), 'quarantined', 1)
  local pace = pace_of(phone)
  pace.waitReason, pace.waitUntil = 'QUARANTINED', ms(a.now)
  tell('session.restriction', a.now, 's', a.session, 'phone', phone, 'kind', 'QUARANTINED', 'reason', a.quarantine)
  incident('SESSION_QUARANTINED', a.now, {sessionId = a.session, phone = phone, reason = a.quarantine})
  rescan(phone, a.now)
  count_restricted(phone, a.now)
end
return reply('OK', {phone = phone})
