-- Accepts single sends for a phone: each a job of one that goes straight into the phone's queue, or waits for its time.
-- a: orders [{job, json, task, contact, phone, to, tz?, expiresAt, priority, sendAt?, limit, now, media?, idem {key, answer}?}]
-- Returns for each, in a plain list, OK {position} | EXISTS | QUEUE_FULL (over `limit` single sends wait for that phone) | NO_MEDIA (the file
-- is not stored any more).
local jobs, accepted = {}, {}
for i, order in ipairs(a.orders) do jobs[i] = K.job(order.job) end
-- Nearly always all of them are new, which is one question.
local are_new = call('EXISTS', unpack(jobs)) == 0

local function accept(o)
  if accepted[o.job] or not are_new and call('EXISTS', K.job(o.job)) == 1 then return reply('EXISTS') end
  if call('SCARD', K.singles(o.phone)) >= o.limit then return reply('QUEUE_FULL') end
  if media_is_gone(o.media) then return reply('NO_MEDIA') end
  local position = whole(accept_single(o))
  accepted[o.job] = true
  -- The answer that is kept is the one that is given, byte for byte; only here is the position known.
  if o.idem then o.idem.answer = (string.gsub(o.idem.answer, '"position":null', '"position":' .. position, 1)) end
  keep_answer(o.idem)
  return '{"code":"OK","position":' .. position .. '}'
end

return each(accept, note_arrived)
