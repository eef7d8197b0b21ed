-- Phones: their queues, their place in dispatch:due, their pacing state and their day's units.

local QUEUES = {K.queue, K.queue_p2, K.queue_p3}

local function queue_key(phone, priority) return QUEUES[priority](phone) end

-- What waits for a phone at this priority or above.
local function ahead(phone, priority)
  local count = 0
  for level = priority, 3 do count = count + call('LLEN', queue_key(phone, level)) end
  return count
end

-- The phone has something new at its head. One that is busy sending is scored again when that settles.
local function make_due(phone, at)
  if call('HGET', K.pacer(phone), 'unsettled') then return end
  call('ZADD', K.due(), 'LT', at, phone)
  wake('due')
end

local function entry_of(task, fields, seq, now)
  return cjson.encode({
    task = task, to = fields.to, tz = fields.tz, expiresAt = tonumber(fields.expiresAt),
    priority = tonumber(fields.priority), seq = tonumber(seq), at = now,
  })
end

-- The earliest end of validity in a phone's queues: nothing there needs a look for that reason before it. A phone that waits for
-- longer is looked at then.
local function note_expiry(phone, at)
  local known = tonumber(call('HGET', K.pacer(phone), 'minExpiry') or nil)
  if not known or at < known then call('HSET', K.pacer(phone), 'minExpiry', at) end
  if call('ZADD', K.due(), 'XX', 'LT', 'CH', at, phone) == 1 then wake('due') end
end

-- At the tail: a task that comes for the first time. The number keeps first come, first served through parking.
local function enqueue(phone, task, fields, now)
  local idle = ahead(phone, 1) == 0
  local seq = call('HINCRBY', K.pacer(phone), 'seq', 1)
  call('LPUSH', queue_key(phone, fields.priority), entry_of(task, fields, seq, now))
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
    if #items > 0 then merge_at_head(queue_key(phone, priority), items) end
  end
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
  return #ready
end

-- A message was on the wire somewhere between `from` (it was claimed and its slot had come) and `at` (we heard of it), kept as
-- "from-at". Gaps count from the later end; a rest before it is certain only up to the earlier one.
-- A rolling minute of sends is kept, and never fewer than C.sends_kept.
local function stamp_send(phone, from, at)
  local key, sends = K.pacer(phone), {}
  for send in string.gmatch(call('HGET', key, 'sends') or '', '[^,]+') do sends[#sends + 1] = send end
  sends[#sends + 1] = string.format('%.0f-%.0f', from, at)
  local first = 1
  while #sends - first >= C.sends_kept and tonumber(string.match(sends[first], '%d+$')) < at - 60000 do first = first + 1 end
  call('HSET', key, 'sends', table.concat(sends, ',', first))
end

-- The next time worth looking at a phone with nothing unsettled: its slot, or the first parked task.
local function score_again(phone, now)
  local pacer = K.pacer(phone)
  if ahead(phone, 1) > 0 then
    local last = string.match(call('HGET', pacer, 'sends') or '', '(%d+)$')
    local slot = last and tonumber(last) + tonumber(call('HGET', pacer, 'gapMs') or '0') or now
    -- The reason is written with the wait: whoever asks meanwhile why a message has not gone yet gets it for nothing.
    if slot > now then call('HSET', K.phone(phone), 'waitReason', 'PACING', 'waitUntil', slot) end
    call('ZADD', K.due(), math.max(now, slot - C.lead_ms), phone)
    wake('due')
    return
  end
  local first = call('ZRANGE', K.parked(phone), 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', K.due(), first[2], phone) else call('ZREM', K.due(), phone) end
end

-- The unit goes back only into the day it was taken from.
local function return_unit(phone, day)
  local pacer = K.pacer(phone)
  if day and call('HGET', pacer, 'capDay') == day and tonumber(call('HGET', pacer, 'capUsed') or '0') > 0 then
    call('HINCRBY', pacer, 'capUsed', -1)
  end
end

-- What the policies read about a phone, without its queue.
local function phone_facts(phone)
  local about, pace = hash(K.phone(phone)), hash(K.pacer(phone))
  local starts, sends, failures, sessions, override, source = {}, {}, {}, {}, nil, nil
  for from, at in string.gmatch(pace.sends or '', '(%d+)-(%d+)') do
    starts[#starts + 1], sends[#sends + 1] = tonumber(from), tonumber(at)
  end
  for at in string.gmatch(pace.failures or '', '%d+') do failures[#failures + 1] = tonumber(at) end
  local ids = call('SMEMBERS', K.phone_sessions(phone))
  table.sort(ids)
  for _, id in ipairs(ids) do
    local known = call('HMGET', K.session(id), 'connection', 'lastSeen', 'paused')
    sessions[#sessions + 1] = {id = id, connection = known[1] or 'STOPPED', lastSeenMs = tonumber(known[2] or '0'), paused = known[3] == '1'}
    local rpm = tonumber(call('GET', K.session_rpm(id)) or nil)
    if rpm and rpm <= (override or rpm) then override, source = rpm, call('GET', K.session_rpm_source(id)) or nil end
  end
  local set, fleet = call('HMGET', K.pacer_config(phone), 'minDelayMs', 'maxDelayMs', 'burstLimit', 'burstCooldownMs', 'rpm'), hash(K.fleet())
  return {
    phone = phone, version = tonumber(pace.version or '0'),
    createdAt = tonumber(about.createdAt), timezone = about.timezone, rpmOverride = override, rpmSource = source, rpmChangedAt = tonumber(about.rpmChangedAt),
    pacer = {
      minDelayMs = tonumber(set[1] or nil), maxDelayMs = tonumber(set[2] or nil), burstLimit = tonumber(set[3] or nil),
      burstCooldownMs = tonumber(set[4] or nil), rpm = tonumber(set[5] or nil),
    },
    restriction = about.restriction, restrictedUntil = tonumber(about.restrictedUntil), failures = list(failures),
    cooldownUntil = tonumber(about.cooldownUntil or '0'), quarantined = about.quarantined == '1',
    lastSentAt = tonumber(pace.lastSent), fleetPaused = fleet.paused == '1', fleetStopped = fleet.stopped == '1', unsettled = pace.unsettled,
    starts = list(starts), sends = list(sends), gapMs = tonumber(pace.gapMs or '0'), gapKey = pace.gapKey or '',
    capDay = pace.capDay or '', capUsed = tonumber(pace.capUsed or '0'), sessions = list(sessions),
  }
end
