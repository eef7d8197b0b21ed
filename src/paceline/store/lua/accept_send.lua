-- Accepts single sends for a phone: each a job of one that goes straight into the phone's queue, or waits for its time.
-- a: orders [{job, json, task?, contact?, phone, to, tz?, expiresAt, priority, sendAt?, limit, now, isBound?, media?, idem {key, answer}?}]
--    task, contact: <job>:0 and `to` if left out; isBound: some phone is known to write to this person, so looking for it is worth while
-- Returns for each, in a plain list, OK {position} | EXISTS | QUEUE_FULL (over `limit` single sends wait for that phone) | NO_MEDIA (the file
-- is not stored any more).
local jobs, strangers, met, accepted = {}, {}, {}, {}
for i, o in ipairs(a.orders) do
  jobs[i] = K.job(o.job)
  if not o.isBound then strangers[#strangers + 1], strangers[#strangers + 2] = K.sticky(o.to), K.person(o.to) end
end
-- Nearly always all of them are new, and one question for all is much less than one for each.
local are_new = call('EXISTS', unpack(jobs)) == 0
local are_strangers = #strangers > 0 and call('EXISTS', unpack(strangers)) == 0

local function accept(o)
  if accepted[o.job] or not are_new and call('EXISTS', K.job(o.job)) == 1 then return reply('EXISTS') end
  if call('SCARD', K.singles(o.phone)) >= o.limit then return reply('QUEUE_FULL') end
  if media_is_gone(o.media) then return reply('NO_MEDIA') end
  o.task, o.contact = o.task or o.job .. ':0', o.contact or o.to
  local is_stranger = are_strangers and not o.isBound and not met[o.to]
  met[o.to] = true
  local position = whole(accept_single(o, is_stranger))
  accepted[o.job] = true
  -- The answer that is kept is the one that is given, byte for byte; only here is the position known.
  if o.idem then o.idem.answer = (string.gsub(o.idem.answer, '"position":null', '"position":' .. position, 1)) end
  keep_answer(o.idem)
  return '{"code":"OK","position":' .. position .. '}'
end

return each(accept, note_arrived, set_noted)
