-- Hand-overs to post to the orchestrator (SEND_MODE=api), under a lease: whoever took them posts them, and if it dies they come again.
-- a: now, lease (ms), limit
-- Returns OK {tasks? [{task, session, to}], ended? [task …] (canceled while on their way; what they hold is to be cleared), nextAt?}.
-- A member stays until the orchestrator's script or a settling takes it out, so a crash anywhere in between costs a lease, never a task.
local tasks, ended = {}, {}
for _, task in ipairs(call('ZRANGEBYSCORE', K.handing(), '-inf', a.now, 'LIMIT', 0, a.limit)) do
  local known, byte = message_of(task), byte_of(task)
  if known.handing == '1' and (byte == 'h' or (byte ~= '' and has(TERMINAL, byte))) then
    call('ZADD', K.handing(), a.now + a.lease, task)
    if byte == 'h' then tasks[#tasks + 1] = {task = task, session = known.sessionId, to = known.to} else ended[#ended + 1] = task end
  else
    -- The mark and the place are one; neither may outlive the other.
    call('ZREM', K.handing(), task)
    call('HDEL', K.message(task), 'handing')
  end
end
return reply('OK', {tasks = list(tasks), ended = list(ended), nextAt = first_score({K.handing()})})
