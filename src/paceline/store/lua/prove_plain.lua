-- Settles messages that went out just as they were seen: handed over or claimed, of a number that is busy with them and was heard of since.
-- It touches nothing of the rest; what to do about that is for prove_sent to say. Nearly always there is no rest, so nothing is asked here
-- but whether it holds, and what concerns them all is written for all together. What is written is worked out by store/proofs.py.
-- a: now; of each phones, begins (how the pace it was decided on begins, with its version), tasks, states (as they were seen), lists and items (where it
--    lies, and what stands for it there), dueAt (when the number is worth a look; false if nothing else was waiting there), stats (the key of its
--    session's day), paces and sends (phone and text as it shall be, lib/25_pace.lua), statuses (key and SENT); first (the earliest of dueAt);
--    minutes [[place, session, what it sent in the last one]] (which it is time to tell);
--    jobs [[job, first (place of its first task; the others follow), indexes in order, reads, writes (of their states, for BITFIELD)]]
-- Returns {places (from 1) of those that were left, [[place, what is wrong]] (of those whose job could not be counted)}.
local now, phones, tasks, states = ms(a.now), a.phones, a.tasks, {}
for _, page in ipairs(a.jobs) do
  local job, first, _, reads = unpack(page)
  for i, byte in ipairs(redis.pcall('BITFIELD_RO', K.job_states(job), unpack(reads))) do states[first + i - 1] = byte end
end
local lines = call('HMGET', K.pace(), unpack(phones))

-- The first write frees memory, so it passes when Redis is full. False if it does not lie there, or what is there is of another type.
local function take(place)
  local list, item = a.lists[place], a.items[place]
  local last = redis.pcall('RPOP', list)
  if last == item and type(redis.pcall('HSET', K.message(tasks[place]), 'sentAt', now)) == 'number' then return true end
  if type(last) == 'string' then call('RPUSH', list, last) end
  return false
end

-- Whoever had nothing more to do when it was handed this may have by now.
local function has_come(phone) return call('EXISTS', K.queue(phone), K.queue_p2(phone), K.queue_p3(phone), K.parked(phone)) > 0 end

local scores, idle = {}, {}
for place, phone in ipairs(phones) do
  local due_at = a.dueAt[place]
  local is_same = states[place] == a.states[place] and string.find(lines[place] or '', a.begins[place], 1, true) == 1
    and (due_at or not has_come(phone))
  if not (is_same and take(place)) then
    leave(place)
  elseif due_at then
    scores[#scores + 1], scores[#scores + 2] = due_at, phone
  else
    idle[#idle + 1] = phone
  end
end
if #left == #phones then return {left, {}} end

call('ZREM', K.deadlines(), unpack(of_done(tasks, 1, 1)))
call('HSET', K.pace(), unpack(of_done(a.paces, 2, 1)))
call('HSET', K.sends(), unpack(of_done(a.sends, 2, 1)))
if #idle > 0 then call('ZREM', K.due(), unpack(idle)) end
if #scores > 0 then
  call('ZADD', K.due(), unpack(scores))
  wake_if_sooner(a.first)
end

local function settle_page(job, first, indexes, _, writes)
  local sent = of_done(indexes, 1, first)
  if #sent == 0 then return end
  call('BITFIELD', K.job_states(job), unpack(of_done(writes, 4, first)))
  tell_together(EVENT.S, job, a.now, sent)
  count_in(job, #sent, 0, #sent, a.now)
end

local failed = {}
for _, page in ipairs(a.jobs) do
  local is_good, problem = pcall(settle_page, unpack(page))
  for place = page[2], page[2] + #page[3] - 1 do
    if not (is_good or is_left[place]) then failed[#failed + 1] = {place, said(problem)} end
  end
end
call('MSET', unpack(of_done(a.statuses, 2, 1)))
forget_after(of_done(tasks, 1, 1), a.now)
count_fleet('sent', a.now, #tasks - #left)
-- Whatever becomes of a number's statistics must not hold it up.
for place, key in ipairs(a.stats) do
  if not is_left[place] and redis.pcall('INCRBY', key, '1') == 1 then call('EXPIRE', key, C.session_days_ttl) end
end
for _, minute in ipairs(a.minutes) do
  local place, session, count = unpack(minute)
  if not is_left[place] then pcall(tell_minute, phones[place], session, count, a.now) end
end
return {left, failed}
