-- Takes due phones under a short lease and returns their facts.
-- a: now, lease (ms), limit (phones), heads (tasks looked at per phone), brief (the first task that may go ends the look at a phone)
-- Returns {OK, nextAt or nil, [phone row, head rows, more, globalFreeAt, dueAt] …} | {STOPPED}, as a plain reply: encoding it would cost more than
-- reading it. The lease names this look: hand_off refuses if anybody looked later.

-- Rows of tasks in one call, and of tasks that ended in one look at a phone: a job's validity ends for all its numbers in the same moment,
-- and nobody else is answered meanwhile. The rest has its look in the next call.
local MOST_ROWS, MOST_ENDED = 500, 200

-- A task ends visibly when its validity does, also deep in the queue of a phone that cannot send. The earliest end is known,
-- so the whole queue is read only when something in it has really ended.
local function add_expired(phone, known, heads, locked)
  if not known or tonumber(known) > a.now then return end
  local seen, earliest, ended = {}, nil, false
  for _, row in ipairs(heads) do seen[row[1]] = true end
  for priority = 1, 3 do
    for _, entry in ipairs(call('LRANGE', queue_key(phone, priority), 0, -1)) do
      local item = cjson.decode(entry)
      if item.expiresAt > a.now then
        earliest = math.min(item.expiresAt, earliest or item.expiresAt)
      else
        ended = true
        if not seen[entry] and #heads < MOST_ENDED then heads[#heads + 1] = head_row(phone, entry, a.now, locked) end
      end
    end
  end
  -- Whoever looks may die before ending them, so the next look has to find them again.
  if ended then return end
  if earliest then call('HSET', K.pacer(phone), 'minExpiry', ms(earliest)) else call('HDEL', K.pacer(phone), 'minExpiry') end
end

local rows = 0

-- What is known of a phone and the end of its queue: most of the time the task at its head may go, and no other is looked at.
local function approach(due_phone)
  local phone = due_phone.phone
  local row = phone_row(phone)
  local priority, entries = served_queue(phone, 2, not filled(row[3][12]))
  local parked_at = tonumber(filled(row[3][13]))
  -- A phone with nothing to do may have something parked that nobody noted.
  local back = (parked_at and parked_at <= a.now or not priority) and unpark(phone, a.now) or 0
  if back > 0 then
    rows, row = rows + back, phone_row(phone)
    priority, entries = served_queue(phone, 2)
  end
  if filled(row[3][12]) and (priority or 1) == 1 then call('HSET', K.pacer(phone), 'urgent', '') end
  -- Where the last look found none that may go, because of something only the policy knows, this one is not brief.
  local head = a.brief and row[3][11] ~= 'IN_TURN' and #entries > 0 and cjson.decode(entries[#entries])
  if head and (type(head) ~= 'table' or type(head.task) ~= 'string' or type(head.to) ~= 'string') then error('this is no task') end
  return {phone = phone, row = row, priority = priority, entries = entries, head = head, dueAt = due_phone.dueAt}
end

local function look(seen)
  local phone, row, entries = seen.phone, seen.row, seen.entries
  local locked, heads, more, is_clear = is_locked(row, a.now), {}, false, false
  if seen.head then
    heads[1], is_clear = head_row(phone, entries[#entries], a.now, locked, seen.head)
    more = #entries > 1 or seen.priority > 1 and ahead(phone, 1) > 1
  end
  if not is_clear and #entries > #heads then heads, more = head_rows(phone, a.heads, a.now, locked, seen.head) end
  add_expired(phone, row[3][10], heads, locked)
  rows = rows + #heads
  return {row, heads, more and 1 or 0, fleet_free_at(phone, a.now), seen.dueAt}
end

-- An operator stopped the dispatchers; `/start` wakes them.
if fleet_flags()[2] == '1' then return {'STOPPED'} end
local due = call('ZRANGEBYSCORE', K.due(), '-inf', ms(a.now), 'WITHSCORES', 'LIMIT', '0', whole(a.limit))
local found, leases, due_phones, until_ms = {'OK', false}, {}, {}, ms(a.now + a.lease)
for at = 1, #due, 2 do
  leases[at], leases[at + 1] = until_ms, due[at]
  due_phones[#due_phones + 1] = {phone = due[at], dueAt = due[at + 1]}
end
-- The leases come first: a phone that cannot be read must not stand at the head for ever, with all others behind it.
if #leases > 0 then call('ZADD', K.due(), unpack(leases)) end

-- Each phone on its own: what cannot be read of one does not touch the others. Those that there is no room for keep their place.
local function for_each(looks, step)
  local done = {}
  for _, seen in ipairs(looks) do
    if rows < MOST_ROWS then
      local is_good, result = pcall(step, seen)
      if is_good then done[#done + 1] = result else put_aside(seen.phone, result, a.now) end
    else
      call('ZADD', K.due(), seen.dueAt, seen.phone)
    end
  end
  return done
end

local looks, tasks, people = for_each(due_phones, approach), {}, {}
for _, seen in ipairs(looks) do
  if seen.head then tasks[#tasks + 1], people[#people + 1] = seen.head.task, seen.head.to end
end
-- Only to read them: nothing moves in a look.
gather(tasks)
look_up_listed(people)
for _, result in ipairs(for_each(looks, look)) do found[#found + 1] = result end
found[2] = tonumber(call('ZRANGE', K.due(), '0', '0', 'WITHSCORES')[2] or nil) or false
return found
