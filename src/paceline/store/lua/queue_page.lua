-- A page of what waits for a phone, in the order it will go: priority 3, 2, 1, each from its head; then what is parked, by its time.
-- a: phone, limit, after? {priority, seq} (the last one seen in a queue) | {priority: 0, at, seq} (parked: its time, how many of that time)
-- Returns OK {items? [item …], total, parked, scheduled, next? (the `after` of the next page), phone, fleet}. Changes nothing.
-- What has ended and not come to the head yet is counted, not shown.
local after = a.after or {priority = 4}
local items, left, last = {}, a.limit, nil
local paused = {}

local function is_paused(task)
  local job = split(task)
  if paused[job] == nil then paused[job] = job_is_paused(job) end
  return paused[job]
end

local function wait_of(key)
  local known = call('HMGET', key, 'waitReason', 'waitUntil')
  local reason = filled(known[1])
  return {waitReason = reason, waitUntil = reason and known[2] or nil}
end

local function wait_of_phone(phone)
  local pace = pace_of(phone)
  local reason = filled(pace.waitReason)
  local wait = {waitReason = reason, waitUntil = reason and pace.waitUntil or nil}
  wait.timezone = call('HGET', K.phone(phone), 'timezone') or nil
  return wait
end

local function show(entry, position)
  local item = item_of(entry)
  local byte = byte_of(item.task)
  if not has(TERMINAL, byte) then
    items[#items + 1] = {
      task = item.task, to = item.to, priority = item.priority, expiresAt = item.expiresAt, state = byte, position = position,
      known = wait_of(K.message(item.task)), jobPaused = is_paused(item.task),
    }
  end
  return item.seq
end

-- How many at the head of a list stand up to this number. They stand in its order, whatever left meanwhile.
local function up_to(key, length, seq)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    if item_of(call('LINDEX', key, -middle - 1)).seq <= seq then low = middle + 1 else high = middle end
  end
  return low
end

local before = 0
for priority = 3, 1, -1 do
  local key = queue_key(a.phone, priority)
  local length = call('LLEN', key)
  local start = priority > after.priority and length or priority == after.priority and up_to(key, length, after.seq) or 0
  local count = math.min(left, length - start)
  if count > 0 then
    local entries = call('LRANGE', key, -(start + count), -(start + 1))
    for i = #entries, 1, -1 do
      last = {priority = priority, seq = show(entries[i], before + start + #entries - i)}
    end
    left = left - count
  end
  before = before + length
end

local key = K.parked(a.phone)
if left > 0 then
  local from, seen = '-inf', 0
  if after.at then from, seen = after.at, math.min(after.seq, call('ZCOUNT', key, after.at, after.at)) end
  local found = call('ZRANGEBYSCORE', key, from, '+inf', 'WITHSCORES', 'LIMIT', seen, left)
  for i = 1, #found, 2 do
    show(found[i])
    local at = tonumber(found[i + 1])
    seen = (at == (last and last.at or after.at)) and seen + 1 or 1
    last = {priority = 0, at = at, seq = seen}
    left = left - 1
  end
end

local scheduled = 0
for _, task in ipairs(call('SMEMBERS', K.singles(a.phone))) do
  if byte_of(task) == 's' then scheduled = scheduled + 1 end
end
local parked = call('ZCARD', key)
return reply('OK', {
  items = list(items), total = before + parked, parked = parked, scheduled = scheduled, next = left == 0 and last or nil,
  phone = wait_of_phone(a.phone), fleet = hash(K.fleet()),
})
