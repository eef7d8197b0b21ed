-- A worker tells the end of what it was told to do. Told again, or of something nobody told it, it changes nothing. One whose time was over
-- may have been carried out all the same: its worker's word counts more than our clock.
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
if command then
  call('HDEL', K.session_commands(a.session), command.kind)
else
  local last = cjson.decode(call('HGET', key, 'lastCommand') or '{}')
  if last.id ~= a.id or last.error ~= 'EXPIRED' then return reply('OK') end
  command = last
end
if command.kind == 'pair' and a.ok and a.code then call('SET', K.session_pairing(a.session), a.code, 'PX', a.codeTtl) end
if command.kind == 'logout' and a.ok then
  local change = WISH.LOGOUT_DONE
  call('HSET', key, 'desired', change.desired)
  put_state(a.session, change.connection, change.authorisation, 0, a.now)
  rescan(phone, a.now)
  wake('fleet')
end
note_command_end(a.session, phone, command, {ok = a.ok, error = a.error, status = a.ok and 'DONE' or 'REFUSED'}, a.now)
return reply('OK', {kind = command.kind})
