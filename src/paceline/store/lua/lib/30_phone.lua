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

-- A field of a pacer, or nil. What is cleared there with its neighbours is empty, not gone: one command less for every message.
local function filled(value) return value and value ~= '' and value or nil end

-- The phone has something new at its head. One that is busy sending is scored again when that settles.
local function make_due(phone, at)
  if filled(call('HGET', K.pacer(phone), 'unsettled')) then return end
  if batch then add_pair(batch.sooner, at, phone) else call('ZADD', K.due(), 'LT', ms(at), phone) end
  wake_if_first(phone)
end

-- As JSON, put together here: cjson takes long over a number.
local function entry_of(task, fields, seq, now)
  return '{"task":"' .. task .. '","to":' .. cjson.encode(fields.to) .. (fields.tz and ',"tz":' .. cjson.encode(fields.tz) or '')
    .. ',"expiresAt":' .. ms(fields.expiresAt) .. ',"priority":' .. whole(fields.priority) .. ',"seq":' .. whole(seq)
    .. ',"at":' .. ms(now) .. (fields.single and ',"single":true}' or '}')
end

-- Something of a higher priority lies there. A look that reads no such mark spares itself the other queues while the first has work.
local function mark_urgent(phone, priority)
  if tonumber(priority) > 1 then call('HSET', K.pacer(phone), 'urgent', '1') end
end

-- A phone that waits for longer than one of its tasks is valid is looked at then.
local function score_end(phone, at)
  if batch then
    add_pair(batch.ends, at, phone)
  elseif score_ends({ms(at), phone}) then
    wake_if_first(phone)
  end
end

-- `minExpiry` is the earliest end of validity in a phone's queues: nothing there needs a look for that reason before it.
local function is_earlier(at, known)
  known = tonumber(known or nil)
  return not known or at < known
end

local function note_expiry(phone, at)
  if is_earlier(at, call('HGET', K.pacer(phone), 'minExpiry')) then call('HSET', K.pacer(phone), 'minExpiry', ms(at)) end
  score_end(phone, at)
end

-- At the tail: a task that comes for the first time. The number keeps first come, first served through parking. Returns how many go before it.
local function enqueue(phone, task, fields, now)
  local pacer, priority, expires_at = K.pacer(phone), tonumber(fields.priority), tonumber(fields.expiresAt)
  local seq, urgent, expiry = unpack(call('HMGET', pacer, 'seq', 'urgent', 'minExpiry'))
  seq = tonumber(seq or '0') + 1
  -- All that may fail comes before the first write.
  local first, works_below = filled(urgent) and ahead(phone, priority + 1) or 0, has_work(phone, priority)
  local length = call('LPUSH', queue_key(phone, priority), entry_of(task, fields, seq, now))
  if is_earlier(expires_at, expiry) then
    call('HSET', pacer, 'seq', whole(seq), 'minExpiry', ms(expires_at))
  else
    call('HSET', pacer, 'seq', whole(seq))
  end
  mark_urgent(phone, priority)
  score_end(phone, expires_at)
  local before = length - 1 + first
  if before == 0 and not works_below then make_due(phone, now) end
  return before
end

-- What stands in a queue about a task. Raises if it has no place there.
local function read_entry(entry)
  local item = cjson.decode(entry)
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
  local known = tonumber(filled(call('HGET', K.pacer(phone), 'parkedAt')))
  if not known or at < known then call('HSET', K.pacer(phone), 'parkedAt', ms(at)) end
end

-- Parked tasks whose time has come return to the head, so many at once. Returns how many.
local function unpark(phone, now)
  local ready = {}
  for _, entry in ipairs(call('ZRANGEBYSCORE', K.parked(phone), '-inf', now, 'LIMIT', 0, 500)) do
    local task = cjson.decode(entry).task
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
  call('HSET', K.pacer(phone), 'parkedAt', next_at and ms(next_at) or '')
  return #ready
end

-- The past sends of a phone and one more. It was on the wire somewhere between `from` (it was claimed and its slot had come) and `at` (we
-- heard of it), kept as "from-at". Gaps count from the later end; a rest before it is certain only up to the earlier one.
-- A rolling minute of sends is kept, and never fewer than C.sends_kept.
local function with_send(sends, from, at)
  local count = select(2, string.gsub(sends, '-', ''))
  while count >= C.sends_kept and tonumber(string.match(sends, '-(%d+)')) < at - 60000 do
    sends, count = string.sub(sends, string.find(sends, ',', 1, true) + 1), count - 1
  end
  return sends .. (count > 0 and ',' or '') .. ms(from) .. '-' .. ms(at)
end

-- Whoever does not wait for the fleet's rate any more must not keep a place in its line: those behind it would wait for nobody.
local function leave_line(phone)
  if C.global_rpm > 0 then call('ZREM', K.fleet_waiting(), phone) end
end

-- The next time worth looking at a phone with nothing unsettled: its slot, or the first parked task. `sends` and `gap_ms` are the pacer's;
-- `fields` are of it too, written with the reason for waiting: whoever asks meanwhile why a message has not gone yet gets it for nothing.
local function score_again(phone, now, sends, gap_ms, fields)
  local last, works = string.match(sends or '', '(%d+)$'), has_work(phone)
  local slot = last and tonumber(last) + tonumber(gap_ms or '0') or now
  fields = fields or {}
  if works and slot > now then
    for _, value in ipairs({'waitReason', 'PACING', 'waitUntil', ms(slot)}) do fields[#fields + 1] = value end
  end
  if #fields > 0 then call('HSET', K.pacer(phone), unpack(fields)) end
  if works then return score(phone, math.max(now, slot - C.lead_ms)) end
  leave_line(phone)
  local first, at = first_parked(phone)
  if first then call('ZADD', K.due(), ms(at), phone) else call('ZREM', K.due(), phone) end
end

-- The unit goes back only into the day it was taken from.
local function return_unit(phone, day)
  local pacer = K.pacer(phone)
  if day and call('HGET', pacer, 'capDay') == day and tonumber(call('HGET', pacer, 'capUsed') or '0') > 0 then
    call('HINCRBY', pacer, 'capUsed', -1)
  end
end

-- Its sessions stand beside its other facts, too, in their order: a look at a phone reads one key less.
local function list_sessions(phone)
  local ids = call('SMEMBERS', K.phone_sessions(phone))
  table.sort(ids)
  call('HSET', K.phone(phone), 'sessions', table.concat(ids, ','))
end

-- What the policies read about a phone, without its queue: values as they are stored, false where there is none. `store/rows.py`
-- makes them into facts; naming and converting them here would cost Redis more than reading them does.
local function phone_row(phone)
  local about = call('HMGET', K.phone(phone), 'createdAt', 'timezone', 'rpmChangedAt', 'restriction', 'restrictedUntil', 'cooldownUntil',
    'quarantined', 'minDelayMs', 'maxDelayMs', 'burstLimit', 'burstCooldownMs', 'rpm', 'sessions')
  local sessions = {}
  for id in string.gmatch(about[13] or '', '[^,]+') do
    local known = call('HMGET', K.session(id), 'connection', 'lastSeen', 'paused', 'rpm', 'rpmSource')
    sessions[#sessions + 1] = {id, unpack(known, 1, 5)}
  end
  return {
    phone,
    about,
    call('HMGET', K.pacer(phone), 'version', 'sends', 'failures', 'lastSent', 'unsettled', 'gapMs', 'gapKey', 'capDay', 'capUsed', 'minExpiry',
      'waitReason', 'urgent', 'parkedAt'),
    list(sessions) or false,
    fleet_flags(),
  }
end
