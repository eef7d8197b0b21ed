-- A person wrote to one of our numbers: there is a chat between them, and their conversation stays on the number they wrote to last.
-- a: session, from (digits), at (when they wrote), now
-- Returns OK {phone} | UNKNOWN_SESSION.
local phone = call('HGET', K.session(a.session), 'phone')
if not phone then return reply('UNKNOWN_SESSION') end
-- What waited because it would have been a new chat need not wait any longer.
if know_chat(phone, a.from, a.now) and is_restricted(phone, a.now) then
  park_no_longer(phone, a.now, a.from)
  rescan(phone, a.now)
end
local key = K.sticky(a.from)
local known = call('HMGET', key, 'at', 'warm')
-- An older word that comes late, or the same one again, moves nothing.
if a.at > tonumber(known[2] or '0') then
  call('HSET', key, 'phone', phone, 'at', math.max(a.now, tonumber(known[1] or '0')), 'warm', a.at)
  call('EXPIRE', key, C.warm_ms / 1000 + 3600)
end
return reply('OK', {phone = phone})
