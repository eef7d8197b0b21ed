-- The facts of due phones that are taken (claim_due), of those that are not as simple as most (store/looks.py).
-- a: now, due [phone, when it was due, phone, …], heads (tasks looked at per phone), brief (the first task that may go ends the look at a phone)
-- Returns [phone, facts_text, pace, past sends, marks, when its sessions were heard of, head rows, more, globalFreeAt, dueAt] for each, as a plain
-- reply: encoding it would cost more than reading it. Phones that cannot be read are put aside; those there is no room for are due as before.

-- Rows of tasks in one call, and of tasks that ended in one look at a phone: a job's validity ends for all its numbers in the same moment,
-- and nobody else is answered meanwhile. The rest has its look in the next call.
local MOST_ROWS, MOST_ENDED = 500, 200

-- A task ends visibly when its validity does, also deep in the queue of a phone that cannot send. The earliest end is known,
-- so the whole queue is read only when something in it has really ended.
local function add_expired(phone, known, heads, locked)
  if (tonumber(known) or a.now + 1) > a.now then return end
  local seen, earliest, ended = {}, nil, false
  for _, row in ipairs(heads) do seen[row[1]] = true end
  for priority = 1, 3 do
    for _, entry in ipairs(call('LRANGE', queue_key(phone, priority), 0, -1)) do
      local item = item_of(entry)
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
  local marks = marks_of(phone)
  marks.minExpiry = earliest and ms(earliest) or ''
  put_marks(phone, marks)
end

local rows = 0
-- Of a phone's marks: whether something urgent may lie there, the earliest end of validity, when something parked wants back.
local LOOKED_AT = '^%["[^"]*","([^"]*)","([^"]*)","([^"]*)"'

-- The task at the head, as far as a look has to know it. What we write begins so; whatever else may stand there is read in full.
local function read_head(entry)
  local task, to, expires_at = string.match(entry, '^%["([^"\\]+)","(%d+)",(%d+),')
  if task then return {task = task, to = to, expiresAt = tonumber(expires_at)} end
  return item_of(entry)
end

-- When the sessions of all phones of the look were heard of, by their ids; most phones have one.
local heard = {}
local function heard_of(ids)
  if heard[ids] ~= nil then return heard[ids] end
  local found = {}
  for id in string.gmatch(ids, '[^,]+') do found[#found + 1] = heard[id] or call('HGET', K.sessions_seen(), id) end
  return found
end

-- What is known of a phone and the end of its queue: most of the time the task at its head may go, and no other is looked at.
local function approach(seen)
  local phone = seen.phone
  local urgent, min_expiry, parked_at = string.match(text_of(MARKS, phone), LOOKED_AT)
  local priority, entries = served_queue(phone, 2, urgent == '')
  parked_at = tonumber(parked_at)
  -- A phone with nothing to do may have something parked that nobody noted.
  local back = (parked_at and parked_at <= a.now or not priority) and unpark(phone, a.now) or 0
  if back > 0 then
    rows = rows + back
    priority, entries = served_queue(phone, 2)
  end
  if urgent ~= '' and (priority or 1) == 1 then
    local marks = marks_of(phone)
    marks.urgent = ''
    put_marks(phone, marks)
  end
  seen.priority, seen.entries, seen.minExpiry = priority, entries, min_expiry
  -- Where the last look found none that may go, because of something only the policy knows, this one is not brief.
  seen.head = a.brief and #entries > 0 and not string.find(text_of(PACE, phone), '"IN_TURN"', 1, true) and read_head(entries[#entries])
  return seen
end

local function look(seen)
  local phone, entries = seen.phone, seen.entries
  local ids, restricted_until = string.match(seen.facts, '^(%S*) (%d+)\n')
  local locked, heads, more, is_clear = tonumber(restricted_until) > a.now, {}, false, false
  if seen.head then
    heads[1], is_clear = head_row(phone, entries[#entries], a.now, locked, seen.head)
    more = #entries > 1 or seen.priority > 1 and ahead(phone, 1) > 1
  end
  if not is_clear and #entries > #heads then heads, more = head_rows(phone, a.heads, a.now, locked, seen.head) end
  add_expired(phone, seen.minExpiry, heads, locked)
  rows = rows + #heads
  return {phone, seen.facts, text_of(PACE, phone), sends_of(phone), text_of(MARKS, phone), heard_of(ids), heads, more and 1 or 0, fleet_free_at(phone, a.now), seen.dueAt}
end

local due_phones, phones = {}, {}
for at = 1, #a.due, 2 do
  phones[#phones + 1] = a.due[at]
  due_phones[#due_phones + 1] = {phone = a.due[at], dueAt = a.due[at + 1]}
end

-- Each phone on its own: what cannot be read of one does not touch the others. Those that there is no room for keep their place.
local function for_each(looks, step)
  local done = {}
  for _, seen in ipairs(looks) do
    if rows < MOST_ROWS then
      local is_good, result = pcall(step, seen)
      if is_good then done[#done + 1] = result else put_aside(seen.phone, result, a.now) end
    else
      call('ZADD', K.due(), whole(seen.dueAt), seen.phone)
    end
  end
  return done
end

-- The facts of all of them: one question, and one more when their sessions were heard of.
local function with_facts(looks)
  if #phones == 0 then return looks end
  local texts, made, sessions = call('HMGET', K.phone_facts(), unpack(phones)), {}, {}
  for i, seen in ipairs(looks) do seen.facts = texts[i] end
  look_up(PACE, phones)
  look_up(SENDS, phones)
  look_up(MARKS, phones)
  looks = for_each(looks, function(seen)
    if not seen.facts then
      seen.facts = facts_text(seen.phone)
      made[#made + 1], made[#made + 2] = seen.phone, seen.facts
    end
    local id = string.match(seen.facts, '^([^, ]+) ')
    if id then sessions[#sessions + 1] = id end
    return seen
  end)
  if #made > 0 then call('HSET', K.phone_facts(), unpack(made)) end
  if #sessions == 0 then return looks end
  for i, at in ipairs(call('HMGET', K.sessions_seen(), unpack(sessions))) do heard[sessions[i]] = at end
  return looks
end

local looks, tasks, people = for_each(with_facts(due_phones), approach), {}, {}
for _, seen in ipairs(looks) do
  if seen.head then tasks[#tasks + 1], people[#people + 1] = seen.head.task, seen.head.to end
end
-- Only to read them: nothing moves in a look.
gather(tasks)
look_up_listed(people)
local found = for_each(looks, look)
write_held()
return found
