-- Phones: their queues, their place in dispatch:due, their pacing state and their day's units.

local QUEUES = {K.queue, K.queue_p2, K.queue_p3}

local function queue_key(phone, priority) return QUEUES[priority](phone) end

-- What waits for a phone at this priority or above.
local function ahead(phone, priority)
  local count = 0
  for level = priority, 3 do count = count + call('LLEN', queue_key(phone, level)) end
  return count
end

local function has_work(phone)
  for level = 1, 3 do
    if call('LLEN', queue_key(phone, level)) > 0 then return true end
  end
  return false
end

-- A field of a pacer, or nil. What is cleared there with its neighbours is empty, not gone: one command less for every message.
local function filled(value) return value and value ~= '' and value or nil end

-- The phone has something new at its head. One that is busy sending is scored again when that settles.
local function make_due(phone, at)
  if filled(call('HGET', K.pacer(phone), 'unsettled')) then return end
  call('ZADD', K.due(), 'LT', ms(at), phone)
  wake_if_first(phone)
end

local function entry_of(task, fields, seq, now)
  return cjson.encode({
    task = task, to = fields.to, tz = fields.tz, expiresAt = tonumber(fields.expiresAt),
    priority = tonumber(fields.priority), seq = tonumber(seq), at = now, single = fields.single,
  })
end

-- Something of a higher priority lies there. A look that reads no such mark spares itself the other queues while the first has work.
local function mark_urgent(phone, priority)
  if tonumber(priority) > 1 then call('HSET', K.pacer(phone), 'urgent', '1') end
end

-- The earliest end of validity in a phone's queues: nothing there needs a look for that reason before it. A phone that waits for
-- longer is looked at then.
local function note_expiry(phone, at)
  local known = tonumber(call('HGET', K.pacer(phone), 'minExpiry') or nil)
  if not known or at < known then call('HSET', K.pacer(phone), 'minExpiry', ms(at)) end
  if call('ZADD', K.due(), 'XX', 'LT', 'CH', ms(at), phone) == 1 then wake_if_first(phone) end
end

-- At the tail: a task that comes for the first time. The number keeps first come, first served through parking.
local function enqueue(phone, task, fields, now)
  local idle = not has_work(phone)
  local seq = call('HINCRBY', K.pacer(phone), 'seq', '1')
  call('LPUSH', queue_key(phone, fields.priority), entry_of(task, fields, seq, now))
  mark_urgent(phone, fields.priority)
  note_expiry(phone, tonumber(fields.expiresAt))
  if idle then make_due(phone, now) end
end

-- To the head of one list, the first come nearest to it. What stands there and came earlier still goes before them.
local function merge_at_head(key, items)
  local newest = 0
  for _, item in ipairs(items) do newest = math.max(newest, item.seq) end
  local first = call('LINDEX', key, -1)
  while first and cjson.decode(first).seq < newest do
    items[#items + 1] = {entry = call('RPOP', key), seq = cjson.decode(first).seq}
    first = call('LINDEX', key, -1)
  end
  table.sort(items, function(x, y) return x.seq > y.seq end)
  for _, item in ipairs(items) do call('RPUSH', key, item.entry) end
end

-- At the head: tasks that were here before.
local function put_back(phone, entries)
  local levels = {{}, {}, {}}
  for _, entry in ipairs(entries) do
    local item = cjson.decode(entry)
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
