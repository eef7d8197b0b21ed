-- The platform stated a limit of one number, or that there is none. What it stated last counts: late words change nothing, repeated ones add nothing.
-- a: session, kind (TIME_LOCKED | CAPPED | NONE), untilMs (unless NONE), at (when it was stated), epoch?, now
-- Returns OK {phone} | LATE {phone} | UNKNOWN_SESSION.
local about = call('HMGET', K.session(a.session), 'phone', 'epoch')
local phone = about[1]
if not phone then return reply('UNKNOWN_SESSION') end
local key = K.phone(phone)
local known = call('HMGET', key, 'restriction', 'restrictedUntil', 'restrictionAt')
if a.epoch and a.epoch < tonumber(about[2] or '0') then return reply('LATE', {phone = phone}) end
if a.at < tonumber(known[3] or '0') then return reply('LATE', {phone = phone}) end
call('HSET', key, 'restrictionAt', a.at)
local until_ms = tonumber(known[2] or '0')
if a.kind == 'NONE' then
  if known[1] then lift(phone, a.now) end
elseif known[1] ~= a.kind or until_ms ~= a.untilMs then
  -- What was parked for longer than the platform now says (we may have guessed, after a 463) must not wait for that.
  if until_ms > a.untilMs then lift(phone, a.now) end
  restrict(phone, a.session, a.kind, a.untilMs, a.now)
end
return reply('OK', {phone = phone})
