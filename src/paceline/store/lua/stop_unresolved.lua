-- A person wrote a stop word and nobody can tell whose number they have: an operator has to look, or their wish would be lost.
-- a: session, stop (names the inbound message), from (as it may be shown), id (WhatsApp's, of the message), at (when they wrote), keep (ms), now
-- Returns OK | REPEAT (this message was heard before) | UNKNOWN_SESSION.
local phone = call('HGET', K.session(a.session), 'phone')
if not phone then return reply('UNKNOWN_SESSION') end
if call('ZADD', K.stops(), 'NX', a.now, a.stop) == 0 then return reply('REPEAT') end
call('ZREMRANGEBYSCORE', K.stops(), '-inf', a.now - a.keep)
incident('STOP_UNRESOLVED', a.now, {sessionId = a.session, phone = phone, from = a.from, whatsappId = a.id, sentAt = a.at})
return reply('OK')
