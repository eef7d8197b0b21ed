-- Records what a worker said about its session. Late words, of an older moment or of an instance that was replaced, change nothing.
-- a: session, event (JSON), now, at (the worker's own time), epoch?, connection?, authorisation?, quarantine? (reason)
-- Returns OK {phone} | UNKNOWN_SESSION.
local key = K.session(a.session)
local phone = call('HGET', key, 'phone')
if not phone then return reply('UNKNOWN_SESSION') end
call('HSET', key, 'lastSeen', a.now)
if a.event then
  call('LPUSH', K.session_events(a.session), a.event)
  call('LTRIM', K.session_events(a.session), 0, 199)
end
if a.epoch and a.epoch < tonumber(call('HGET', key, 'epoch') or '0') then return reply('OK', {phone = phone}) end
if a.connection and a.at >= tonumber(call('HGET', key, 'connectionAt') or '0') then
  local was = call('HMGET', key, 'connection', 'authorisation')
  local authorisation = a.authorisation or was[2] or ''
  call('HSET', key, 'connection', a.connection, 'connectionAt', a.at)
  if a.authorisation then call('HSET', key, 'authorisation', a.authorisation) end
  if was[1] ~= a.connection or was[2] ~= authorisation then
    tell('session.status', a.now, 's', a.session, 'phone', phone, 'connection', a.connection, 'authorisation', authorisation)
  end
  call('SET', K.session_status(a.session), a.connection)
  if a.connection == 'CONNECTED' then
    -- A look that saw it offline would put the phone to sleep; it has to look again.
    call('HINCRBY', K.pacer(phone), 'version', 1)
    make_due(phone, a.now)
    jobs_look_again(a.now)
  end
end
if a.quarantine and call('HGET', K.phone(phone), 'quarantined') ~= '1' then
  -- With its reason: the message it was busy with may keep the dispatcher from looking at it for a while.
  call('HSET', K.phone(phone), 'quarantined', 1, 'waitReason', 'QUARANTINED', 'waitUntil', a.now)
  tell('session.restriction', a.now, 's', a.session, 'phone', phone, 'kind', 'QUARANTINED', 'reason', a.quarantine)
  incident('SESSION_QUARANTINED', a.now, {sessionId = a.session, phone = phone, reason = a.quarantine})
  rescan(phone, a.now)
  count_restricted(phone, a.now)
end
return reply('OK', {phone = phone})
