-- The platform stated a limit of one number, or that there is none. What it stated last counts: late words change nothing, repeated ones add
-- nothing. A limit counts unless its own worker said something since, another's clock may be behind; but what lifts one must not be older than
-- our hearing of it from another worker.
-- a: session, kind (TIME_LOCKED | CAPPED | NONE: none of them), untilMs (unless NONE; one that is past: this limit is over), at (when it was
-- stated by its worker's clock, never later than now), epoch?, word? (its name in that epoch, or in all if there is none), now
-- Returns OK {phone} | LATE {phone} | KNOWN {phone} (a copy) | UNKNOWN_SESSION.
local about = call('HMGET', K.session(a.session), 'phone', 'epoch', 'restrictionAt')
local phone = about[1]
if not phone then return reply('UNKNOWN_SESSION') end
if a.epoch and a.epoch < tonumber(about[2] or '0') then return reply('LATE', {phone = phone}) end
if not is_news(a.session, a.epoch, a.word) then return reply('KNOWN', {phone = phone}) end
if a.at < said_at(about[3], a.now) then return reply('LATE', {phone = phone}) end
call('HSET', K.session(a.session), 'restrictionAt', a.at)
local was = is_restricted(phone, a.now)
if a.kind == 'NONE' or a.untilMs <= a.now then
  local stays = lift(phone, a.kind ~= 'NONE' and a.kind or nil, a.session, a.at, a.now)
  if was and not is_restricted(phone, a.now) then tell('session.restriction', a.now, 's', a.session, 'phone', phone, 'kind', 'NONE') end
  if stays then return reply('LATE', {phone = phone}) end
else
  restrict(phone, a.session, a.kind, a.untilMs, a.now)
end
return reply('OK', {phone = phone})
