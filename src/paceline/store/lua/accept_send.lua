-- Accepts single sends for a phone: each a job of one that goes straight into the phone's queue, or waits for its time.
-- a: orders [{job, json, task?, contact?, phone, to, tz?, expiresAt, priority, sendAt?, limit, now, isBound?, isUnseen?, media?,
--    idem {key, answer}?}]
--    task, contact: <job>:0 and `to` if left out; isBound: some phone is known to write to this person, so looking for it is worth while;
--    isUnseen: nobody has looked this person up, and the phone was chosen as for somebody new
-- Returns for each, in a plain list, OK {position} | EXISTS | QUEUE_FULL (over `limit` single sends wait for that phone) | NO_MEDIA (the file
-- is not stored any more); of one that is unseen SUPPRESSED | BOUND {phone, at, warm} too: the phone was to be chosen with this in mind.
local jobs, phones, strangers, unseen, met, accepted = {}, {}, {}, {}, {}, {}
for i, o in ipairs(a.orders) do
  jobs[i], phones[i] = K.job(o.job), o.phone
  if not o.isBound then strangers[#strangers + 1], strangers[#strangers + 2] = K.sticky(o.to), K.person(o.to) end
  if o.isUnseen then unseen[#unseen + 1] = o.to end
end
-- Nearly always all of them are new, and one question for all is much less than one for each.
local are_new = call('EXISTS', unpack(jobs)) == 0
local are_strangers = #strangers > 0 and call('EXISTS', unpack(strangers)) == 0
look_up_listed(unseen)
look_up(PACE, phones)
look_up(MARKS, phones)

-- What speaks against the choice of a phone for somebody who was not looked up.
local function objection(o, is_stranger)
  if listed[o.to] then return reply('SUPPRESSED') end
  if is_stranger then return nil end
  local phone, at, warm = sticky_of(o.to)
  if phone then return reply('BOUND', {phone = phone, at = ms(at), warm = warm and ms(warm)}) end
end

local function accept(o)
  if accepted[o.job] or not are_new and call('EXISTS', K.job(o.job)) == 1 then return reply('EXISTS') end
  local is_stranger = are_strangers and not o.isBound and not met[o.to]
  local refusal = o.isUnseen and objection(o, is_stranger)
  if refusal then return refusal end
  if call('SCARD', K.singles(o.phone)) >= o.limit then return reply('QUEUE_FULL') end
  if media_is_gone(o.media) then return reply('NO_MEDIA') end
  o.task, o.contact, met[o.to] = o.task or o.job .. ':0', o.contact or o.to, true
  local position = whole(accept_single(o, is_stranger))
  accepted[o.job] = true
  -- The answer that is kept is the one that is given, byte for byte; only here is the position known.
  if o.idem then o.idem.answer = (string.gsub(o.idem.answer, '"position":null', '"position":' .. position, 1)) end
  keep_answer(o.idem)
  return '{"code":"OK","position":' .. position .. '}'
end

return each(accept, note_arrived, function()
  set_noted()
  write_held()
end)
