-- A person wrote to one of our numbers: there is a chat between them, and their conversation stays on the number they wrote to last.
-- a: session, from (digits), at (when they wrote), id? (WhatsApp's, of the message: told once), text? (told, not kept), now
-- Returns OK {phone} | UNKNOWN_SESSION.
local phone = call('HGET', K.session(a.session), 'phone')
if not phone then return reply('UNKNOWN_SESSION') end
-- What waited because it would have been a new chat need not wait any longer.
if know_chat(phone, a.from, a.now) and is_restricted(phone, a.now) then
  park_no_longer(phone, a.now, a.from)
  rescan(phone, a.now)
end
local _, since, warm = sticky_of(a.from)
-- An older word that comes late, or the same one again, moves nothing.
if a.at > (warm or 0) then stick(a.from, phone, math.max(a.now, since or 0), a.at, C.warm_ms / 1000 + 3600) end
-- Workers repeat what they are not sure we heard. As many ids are remembered as may be on their way twice.
if a.id then
  local seen = K.inbound(phone)
  if call('ZADD', seen, 'NX', a.now, a.id) == 1 then
    call('ZREMRANGEBYRANK', seen, 0, -C.inbound_kept - 1)
    call('EXPIRE', seen, 604800)
    tell('message.received', a.now, 's', a.session, 'phone', phone, 'from', a.from, 'wa', a.id, 'sentAt', ms(a.at),
      unpack(a.text and {'text', a.text} or {}))
  end
end
return reply('OK', {phone = phone})
