-- Accepts a single send for a phone: a job of one that goes straight into the phone's queue, or waits for its time.
-- a: job, json, task, contact, phone, to, tz?, expiresAt, priority, sendAt?, limit, now, media?, idem {key, answer}?
-- Returns OK {position} | EXISTS | QUEUE_FULL (over `limit` single sends wait for that phone) | NO_MEDIA (the file is not stored any more).
if call('EXISTS', K.job(a.job)) == 1 then return reply('EXISTS') end
if call('SCARD', K.singles(a.phone)) >= a.limit then return reply('QUEUE_FULL') end
if media_is_gone(a.media) then return reply('NO_MEDIA') end
local position = ahead(a.phone, a.priority)
-- The answer that is kept is the one that is given, byte for byte; only here is the position known.
if a.idem then a.idem.answer = (string.gsub(a.idem.answer, '"position":null', '"position":' .. position, 1)) end
accept_single(a)
return reply('OK', {position = position})
