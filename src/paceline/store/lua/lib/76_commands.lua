-- What a session's worker is told to do beside sending (pair, scan, logout).

-- A command has an end: the worker told it, or its time is over. `ending`: {ok, error?, status}.
local function note_command_end(session, phone, command, ending, now)
  call('HSET', K.session(session), 'lastCommand', cjson.encode({id = command.id, kind = command.kind, ok = ending.ok, error = ending.error, at = now}))
  wake('outbox:linking:' .. session)
  audit('OPERATOR', now, {
    action = command.kind, status = ending.status, sessionId = session, phone = phone, command = command.id, reason = ending.error,
  })
end

-- Given again at every claim until the worker tells the end, or until it is worth nothing any more: then it ends here, or whoever looks
-- whether something waits for this worker would find it for ever.
local function commands_of(session, now)
  local found = {}
  for _, raw in ipairs(call('HVALS', K.session_commands(session))) do
    local command = cjson.decode(raw)
    if command['until'] > now then
      found[#found + 1] = command
    else
      call('HDEL', K.session_commands(session), command.kind)
      note_command_end(session, call('HGET', K.session(session), 'phone'), command, {ok = false, error = 'EXPIRED', status = 'EXPIRED'}, now)
    end
  end
  table.sort(found, function(x, y) return x.at < y.at end)
  return found
end
