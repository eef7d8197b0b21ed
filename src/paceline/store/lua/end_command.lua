-- A worker tells the end of what it was told to do. Told again, or of something nobody told it, it changes nothing.
-- a: session, id, ok, error?, code? (pair: a JSON text with `value` and `until`), codeTtl? (ms), now
-- Returns OK {kind?} | UNKNOWN_SESSION.
local key = K.session(a.session)
local phone = call('HGET', key, 'phone')
if not phone then return reply('UNKNOWN_SESSION') end
local command
for _, raw in ipairs(call('HVALS', K.session_commands(a.session))) do
  local one = cjson.decode(raw)
  if one.id == a.id then command = one end
end
if not command then return reply('OK') end
call('HDEL', K.session_commands(a.session), command.kind)
call('HSET', key, 'lastCommand', cjson.encode({id = a.id, kind = command.kind, ok = a.ok, error = a.error, at = a.now}))
if command.kind == 'pair' and a.ok and a.code then call('SET', K.session_pairing(a.session), a.code, 'PX', a.codeTtl) end
if command.kind == 'logout' and a.ok then
  local change = WISH.LOGOUT_DONE
  call('HSET', key, 'desired', change.desired)
  put_state(a.session, change.connection, change.authorisation, 0, a.now)
  rescan(phone, a.now)
  wake('fleet')
end
wake('outbox:linking:' .. a.session)
audit('OPERATOR', a.now, {action = command.kind, status = a.ok and 'DONE' or 'REFUSED', sessionId = a.session, phone = phone, command = a.id, reason = a.error})
return reply('OK', {kind = command.kind})
