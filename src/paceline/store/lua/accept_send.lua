-- Accepts single sends for a phone: each a job of one that goes straight into the phone's queue, or waits for its time.
-- a: orders [{job, json, task, contact, phone, to, tz?, expiresAt, priority, sendAt?, limit, now, media?, idem {key, answer}?, asks?, isNew?}]
-- With `asks` a person on the suppression list is refused; with `isNew` one whom a phone writes to already, since then another phone may be
-- the right one.
-- Returns for each, in a plain list, OK {position} | EXISTS | SUPPRESSED | BOUND {bound: [phone, at, warm]} | QUEUE_FULL (over `limit` single
-- sends wait for that phone) | NO_MEDIA (the file is not stored any more).
local function accept(o)
  if call('EXISTS', K.job(o.job)) == 1 then return reply('EXISTS') end
  if o.asks and call('ZSCORE', K.suppressions(), o.to) then return reply('SUPPRESSED') end
  if o.isNew then
    local bound = call('HMGET', K.sticky(o.to), 'phone', 'at', 'warm')
    if bound[1] then return reply('BOUND', {bound = bound}) end
  end
  if call('SCARD', K.singles(o.phone)) >= o.limit then return reply('QUEUE_FULL') end
  if media_is_gone(o.media) then return reply('NO_MEDIA') end
  local position = ahead(o.phone, o.priority)
  -- The answer that is kept is the one that is given, byte for byte; only here is the position known.
  if o.idem then o.idem.answer = (string.gsub(o.idem.answer, '"position":null', '"position":' .. position, 1)) end
  accept_single(o)
  return reply('OK', {position = position})
end

return each(accept)
