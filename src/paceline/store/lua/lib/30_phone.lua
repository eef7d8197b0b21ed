-- Phones: their queues, their place in dispatch:due, their pacing state and their day's units.

local QUEUES = {K.queue, K.queue_p2, K.queue_p3}

local function queue_key(phone, priority) return QUEUES[priority](phone) end

-- What waits for a phone at this priority or above.
local function ahead(phone, priority)
  local count = 0
  for level = priority, 3 do count = count + call('LLEN', queue_key(phone, level)) end
  return count
end

-- Whether anything waits for a phone, at a lower priority than this if one is given.
local function has_work(phone, below)
  for level = 1, (below or 4) - 1 do
    if call('LLEN', queue_key(phone, level)) > 0 then return true end
  end
  return false
end

-- A field, or nil where it is empty.
local function filled(value) return value and value ~= '' and value or nil end

-- The phone has something new at its head. One that is busy sending is scored again when that settles.
local function make_due(phone, at)
  if unsettled_of(phone) then return end
  if batch then add_pair(batch.sooner, at, phone) else call('ZADD', K.due(), 'LT', ms(at), phone) end
  wake_if_first(phone, at)
end

-- A task as it lies in a queue, an outbox and its message: a list (JSON), short, since it is read and written with every step. Put together here:
-- cjson takes long over a number. Lua finds a text again by some of its characters, more of them the shorter it is.
local function entry_of(task, fields, seq, now)
  local rest = (fields.tz or fields.single) and ',' .. cjson.encode(fields.tz or '') .. (fields.single and ',true' or ',false') or ''
  return '["' .. task .. '",' .. cjson.encode(fields.to) .. ',' .. ms(fields.expiresAt) .. ',' .. whole(fields.priority) .. ',' .. whole(seq)
    .. ',' .. ms(now) .. rest .. ']'
end

-- The same, read.
local function item_of(entry)
  local task, to, expires_at, priority, seq, at, tz, single = unpack(cjson.decode(entry))
  if type(task) ~= 'string' or type(to) ~= 'string' then error('this is no task') end
  return {task = task, to = to, expiresAt = expires_at, priority = priority, seq = seq, at = at, tz = tz ~= '' and tz or nil, single = single or nil}
end

-- Its task alone, nil if it is no entry.
local function task_of(entry) return string.match(entry, '^%["([^"]+)"') end

-- Something of a higher priority lies there. A look that reads no such mark spares itself the other queues while the first has work.
local function mark_urgent(phone, priority)
  if tonumber(priority) == 1 then return end
  local marks = marks_of(phone)
  marks.urgent = '1'
  put_marks(phone, marks)
end

-- A phone that waits for longer than one of its tasks is valid is looked at then.
local function score_end(phone, at)
  if batch then
    add_pair(batch.ends, at, phone)
  elseif score_ends({ms(at), phone}) then
    wake_if_first(phone, at)
  end
end

-- `minExpiry` is the earliest end of validity in a phone's queues: nothing there needs a look for that reason before it.
local function is_earlier(at, known)
  known = tonumber(known)
  return not known or at < known
end

local function note_expiry(phone, at)
  local marks = marks_of(phone)
  if is_earlier(at, marks.minExpiry) then
    marks.minExpiry = ms(at)
    put_marks(phone, marks)
  end
  score_end(phone, at)
end

-- At the tail: a task that comes for the first time. The number keeps first come, first served through parking. Returns how many go before it.
local function enqueue(phone, task, fields, now)
  local marks, priority, expires_at = marks_of(phone), tonumber(fields.priority), tonumber(fields.expiresAt)
  local seq = tonumber(filled(marks.seq) or '0') + 1
  -- All that may fail comes before the first write.
  unsettled_of(phone)
  local first, works_below = filled(marks.urgent) and ahead(phone, priority + 1) or 0, has_work(phone, priority)
  local length = call('LPUSH', queue_key(phone, priority), entry_of(task, fields, seq, now))
  marks.seq = whole(seq)
  if is_earlier(expires_at, marks.minExpiry) then marks.minExpiry = ms(expires_at) end
  if priority > 1 then marks.urgent = '1' end
  put_marks(phone, marks)
  score_end(phone, expires_at)
  local before = length - 1 + first
  if before == 0 and not works_below then make_due(phone, now) end
  return before
end

-- What stands in a queue about a task. Raises if it has no place there.
local function read_entry(entry)
  local item = item_of(entry)
  if not (QUEUES[item.priority] and type(item.seq) == 'number' and type(item.expiresAt) == 'number') then error('no place in a queue') end
  return item
end

-- To the head of one list, the first come nearest to it. What stands there and came earlier still goes before them.
local function merge_at_head(key, items)
  local newest = 0
  for _, item in ipairs(items) do newest = math.max(newest, item.seq) end
  local first = call('LINDEX', key, -1)
  while first do
    local is_good, item = pcall(read_entry, first)
    -- What cannot be read there stays where it is; those that come back must not be lost for it.
    if not is_good or item.seq >= newest then break end
    items[#items + 1] = {entry = call('RPOP', key), seq = item.seq}
    first = call('LINDEX', key, -1)
  end
  table.sort(items, function(x, y) return x.seq > y.seq end)
  for _, item in ipairs(items) do call('RPUSH', key, item.entry) end
end

-- At the head: tasks that were here before.
local function put_back(phone, entries)
  local levels = {{}, {}, {}}
  for _, entry in ipairs(entries) do
    local item = read_entry(entry)
    table.insert(levels[item.priority], {entry = entry, seq = item.seq})
    note_expiry(phone, item.expiresAt)
  end
  for priority, items in ipairs(levels) do
    if #items > 0 then
      merge_at_head(queue_key(phone, priority), items)
      mark_urgent(phone, priority)
    end
  end
end

-- The first of what waits for a time of its own, and that time.
local function first_parked(phone)
  local found = call('ZRANGE', K.parked(phone), '0', '0', 'WITHSCORES')
  return found[1], tonumber(found[2] or nil)
end

-- A task waits for a time of its own. The earliest such time stands at the pacer: nothing is parked there that a look before it could bring back.
local function park_until(phone, at, entry)
  call('ZADD', K.parked(phone), ms(at), entry)
  local marks = marks_of(phone)
  if not is_earlier(at, marks.parkedAt) then return end
  marks.parkedAt = ms(at)
  put_marks(phone, marks)
end

-- Parked tasks whose time has come return to the head, so many at once. Returns how many.
local function unpark(phone, now)
  local ready = {}
  for _, entry in ipairs(call('ZRANGEBYSCORE', K.parked(phone), '-inf', now, 'LIMIT', 0, 500)) do
    local task = item_of(entry).task
    call('ZREM', K.parked(phone), entry)
    local retried = call('HGET', K.message(task), 'attempts')
    call('HDEL', K.message(task), 'waitReason', 'waitUntil')
    if move(task, tonumber(retried or '0') > 0 and 't' or 'r', now) then
      ready[#ready + 1] = entry
    else
      call('SREM', K.singles(phone), task)
      retire(task)
    end
  end
  put_back(phone, ready)
  local _, next_at = first_parked(phone)
  local marks = marks_of(phone)
  marks.parkedAt = next_at and ms(next_at) or ''
  put_marks(phone, marks)
  return #ready
end

-- The past sends of a phone and one more. It was on the wire somewhere between `from` (it was claimed and its slot had come) and `at` (we
-- heard of it). Gaps count from the later end; a rest before it is certain only up to the earlier one. Each is thirteen digits, and an `s` behind
-- both if it is proven, else an `x`: of what is read and written with every message nothing has to be taken apart. A rolling minute of
-- sends is kept, and never fewer than C.sends_kept.
local SEND = 27
local function digits(at) return at >= 1e12 and ms(at) or string.format('%013d', at) end

local function with_send(sends, from, at, is_proof)
  if #sends % SEND > 0 then error('these are no sends') end
  local spare, past = #sends / SEND - C.sends_kept, 0
  if spare >= 0 then
    local since = digits(at - 60000)
    while past <= spare and string.sub(sends, past * SEND + 14, past * SEND + 26) < since do past = past + 1 end
    sends = string.sub(sends, past * SEND + 1)
  end
  return sends .. from .. digits(at) .. (is_proof and 's' or 'x')
end

-- How many of these were proven within the last minute, by this session if several have sent (`sent_by`).
local function proven_since(sends, by, session, now)
  local since, count, names = digits(now - 59999), 0, nil
  if string.sub(by, 1, 1) == '*' then
    names = {}
    for name in string.gmatch(string.sub(by, 2), '[^,]+') do names[#names + 1] = name end
  elseif by ~= session then
    return 0
  end
  for place = 0, #sends / SEND - 1 do
    local stop = #sends - place * SEND
    if string.sub(sends, stop - 13, stop - 1) < since then break end
    if string.sub(sends, stop, stop) == 's' and (not names or names[#names - place] == session) then count = count + 1 end
  end
  return count
end

-- Whoever does not wait for the fleet's rate any more must not keep a place in its line: those behind it would wait for nobody.
local function leave_line(phone)
  if C.global_rpm > 0 then call('ZREM', K.fleet_waiting(), phone) end
end

-- When a phone may send next, by its past sends and the rest after the last of them.
local function slot_after(sends, gap_ms, now)
  return sends ~= '' and tonumber(string.sub(sends, -14, -2)) + (tonumber(gap_ms) or 0) or now
end

-- The next time worth looking at a phone with nothing unsettled: its slot if it has work, or the first parked task.
local function score_next(phone, now, slot, works)
  if works then return score(phone, math.max(now, slot - C.lead_ms)) end
  leave_line(phone)
  local first, at = first_parked(phone)
  if first then call('ZADD', K.due(), ms(at), phone) else call('ZREM', K.due(), phone) end
end

-- With it goes the reason for waiting: whoever asks meanwhile why a message has not gone yet gets it for nothing.
local function score_again(phone, now)
  local p, works = pace_of(phone), has_work(phone)
  local slot = slot_after(sends_of(phone), p.gapMs, now)
  if works and slot > now then p.waitReason, p.waitUntil = 'PACING', ms(slot) end
  put_pace(phone, p)
  score_next(phone, now, slot, works)
end

-- The unit goes back only into the day it was taken from.
local function return_unit(phone, day)
  local p = pace_of(phone)
  local used = tonumber(filled(p.capUsed) or '0')
  if not day or p.capDay ~= day or used == 0 then return end
  p.capUsed = whole(used - 1)
  put_pace(phone, p)
end

-- What seldom changes about a phone and its sessions stands in one text for looks over many phones at once (look_due, store/looks.py). Whoever changes
-- any of it forgets the text, and the next look writes it anew.
local function forget_facts(phone) call('HDEL', K.phone_facts(), phone) end

-- Its sessions stand beside its other facts, too, in their order: a look at a phone reads one key less.
local function list_sessions(phone)
  local ids = call('SMEMBERS', K.phone_sessions(phone))
  table.sort(ids)
  call('HSET', K.phone(phone), 'sessions', table.concat(ids, ','))
  forget_facts(phone)
end

-- A session was heard of. It stands in one hash for all, too, for those who look at many.
local function was_seen(session, now, ...)
  call('HSET', K.session(session), 'lastSeen', ms(now), ...)
  call('HSET', K.sessions_seen(), session, ms(now))
end

-- Of a phone what there is of its fields and of its sessions' (a list by their ids), as it is stored; `store/rows.py` makes facts of it, since
-- naming and converting it here would cost Redis more than reading it does. Beside it the ids as one text.
local FACTS = {'createdAt', 'timezone', 'rpmChangedAt', 'restriction', 'restrictedUntil', 'cooldownUntil', 'quarantined', 'minDelayMs', 'maxDelayMs',
  'burstLimit', 'burstCooldownMs', 'rpm'}
local SESSION_FACTS = {'connection', 'paused', 'rpm', 'rpmSource'}

local function present(key, fields)
  local found = {}
  for i, value in ipairs(call('HMGET', key, unpack(fields))) do found[fields[i]] = value or nil end
  return found
end

local function facts_of(phone)
  local about, sessions = present(K.phone(phone), FACTS), {}
  local ids = call('HGET', K.phone(phone), 'sessions') or ''
  for id in string.gmatch(ids, '[^,]+') do
    local known = present(K.session(id), SESSION_FACTS)
    known.id = id
    sessions[#sessions + 1] = known
  end
  about.sessions = list(sessions)
  return about, ids
end

-- The same as one text: ids, until when it may start no new chat (0 if it may), and behind a line's end the facts as JSON. It ends with the
-- phone's own digits: Lua looks at some characters of a text to find it again, and at the last ones first.
local function facts_text(phone)
  local about, ids = facts_of(phone)
  local json = next(about) and cjson.encode(about) or '{}'
  return ids .. ' ' .. (about.restriction and about.restrictedUntil or '0') .. '\n' .. json .. '\n' .. phone
end

-- What the policies read about a phone, without its queue.
local function phone_row(phone)
  local about, ids = facts_of(phone)
  local seen = {}
  for id in string.gmatch(ids, '[^,]+') do seen[#seen + 1] = call('HGET', K.sessions_seen(), id) end
  return {phone, next(about) and cjson.encode(about) or '{}', text_of(PACE, phone), sends_of(phone), text_of(MARKS, phone), list(seen) or false, fleet_flags()}
end
