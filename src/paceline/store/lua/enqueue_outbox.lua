-- Completes a hand-over that came by POST: from dispatch:handing into the session's outbox.
-- a: session, task, now
-- Returns OK | REPEAT (it is or was there already) | GONE (withdrawn, canceled or ended meanwhile) | WRONG_SESSION (handed to another) |
-- UNKNOWN (no task of ours).
-- Both must hold, the byte and `handing`: a POST that arrives late finds a hand-over that was withdrawn without its mark, and one that was
-- made anew is as good as the first. So no POST, however late or often, brings back what was taken back.
local byte = byte_of(a.task)
if byte == '' then return reply('UNKNOWN') end
local known = message_of(a.task)
if known.sessionId and known.sessionId ~= a.session then return reply('WRONG_SESSION') end
if byte == 'h' and known.handing == '1' then
  -- First what frees memory, then what needs it: it passes on a full Redis.
  call('ZREM', K.handing(), a.task)
  call('HDEL', K.message(a.task), 'handing')
  call('LPUSH', K.outbox(a.session), known.entry)
  wake('outbox:' .. a.session)
  return reply('OK')
end
return reply(has('hcu' .. WENT_OUT, byte) and 'REPEAT' or 'GONE')
