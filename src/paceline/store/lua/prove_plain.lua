-- Settles messages that went out just as they were seen: handed over or claimed, of a number that is busy with them and was heard of since.
-- It touches nothing of the rest; what to do about that is for prove_sent to say. Nearly always there is no rest, so nothing is asked here
-- but whether it holds, and what concerns them all is written for all together. What is written of each is decided by store/proofs.py.
-- a: now, orders [[task, job, index, byte (its state as it was seen), phone, session, begins (how the pace it was decided on begins, with its
--      version), pace, sends (as they shall be, lib/25_pace.lua), item (what stands for it in its list), dueAt (when the number is worth a
--      look; false if nothing was waiting), day, minute (what its session sent in the last one, if it is time to tell; else false)]]
-- Returns for each, in a plain list, OK | LEFT.
local now, HANDED, SENT = ms(a.now), string.byte('h'), whole(string.byte('S'))
local phones = {}
pages = {}
for place, order in ipairs(a.orders) do
  local job, index = order[2], order[3]
  local page = pages[job]
    or {reads = {}, asked = {}, bytes = {}, writes = {}, unrouted = {}, told = {{}, {}, {}}, sent = 0, failed = 0, ended = 0, at = a.now}
  local reads, count = page.reads, #page.asked
  pages[job], page.asked[count + 1], phones[place] = page, index, order[5]
  reads[count * 3 + 1], reads[count * 3 + 2], reads[count * 3 + 3] = 'GET', 'u8', '#' .. index
end
for job, page in pairs(pages) do
  local found = redis.pcall('BITFIELD_RO', K.job_states(job), unpack(page.reads))
  for i, index in ipairs(page.asked) do page.bytes[index] = found[i] end
end
local lines = {}
for i, line in ipairs(call('HMGET', K.pace(), unpack(phones))) do lines[phones[i]] = line end

-- The first write frees memory, so it passes when Redis is full. False if it does not lie there, or what is there is of another type.
local function take(list, item, task)
  local last = redis.pcall('RPOP', list)
  if last == item and type(redis.pcall('HSET', K.message(task), 'sentAt', now)) == 'number' then return true end
  if type(last) == 'string' then call('RPUSH', list, last) end
  return false
end

local function has_come(phone) return call('EXISTS', K.queue(phone), K.queue_p2(phone), K.queue_p3(phone), K.parked(phone)) > 0 end

local done, statuses, paces_, sends_, idle = {}, {}, {}, {}, {}

local function prove(order)
  local task, job, index, byte, phone, session, begins, line, sends, item, due_at, day, minute = unpack(order)
  local page, count = pages[job], #done
  if page.bytes[index] ~= byte or string.find(lines[phone] or '', begins, 1, true) ~= 1 then return 'LEFT' end
  if not due_at and has_come(phone) then return 'LEFT' end
  if not take(byte == HANDED and K.outbox(session) or K.processing(session), item, task) then return 'LEFT' end
  local writes, written = page.writes, page.sent * 4
  writes[written + 1], writes[written + 2], writes[written + 3], writes[written + 4] = 'SET', 'u8', '#' .. index, SENT
  page.sent, page.ended = page.sent + 1, page.ended + 1
  tell_with_others(page, 1, index, a.now)
  done[count + 1] = task
  statuses[count * 2 + 1], statuses[count * 2 + 2] = K.task_status(task), 'SENT'
  paces_[count * 2 + 1], paces_[count * 2 + 2] = phone, line
  sends_[count * 2 + 1], sends_[count * 2 + 2] = phone, sends
  if due_at then score(phone, due_at) else idle[#idle + 1] = phone end
  -- Whatever becomes of a statistic must not hold up the number.
  pcall(count_day, session, day, 'sent', 1)
  if minute then pcall(tell_minute, phone, session, minute, a.now) end
  return 'OK'
end

return each(prove, function(answers)
  if #done == 0 then return end
  call('ZREM', K.deadlines(), unpack(done))
  call('HSET', K.pace(), unpack(paces_))
  call('HSET', K.sends(), unpack(sends_))
  if #idle > 0 then call('ZREM', K.due(), unpack(idle)) end
  local failed = write_gathered()
  for place, order in ipairs(a.orders) do
    local problem = failed[order[2]]
    if problem then answers[place] = '!' .. said(problem) end
  end
  call('MSET', unpack(statuses))
  forget_after(done, a.now)
  count_fleet('sent', a.now, #done)
end)
