-- Takes due phones under a short lease and returns their facts.
-- a: now, lease (ms), limit (phones), heads (tasks looked at per phone), brief (the first task that may go ends the look at a phone)
-- Returns {OK, nextAt or nil, [phone row, head rows, more, globalFreeAt, dueAt] …} | {STOPPED}, as a plain reply: encoding it would cost more than
-- reading it. The version names this look: hand_off refuses if anybody looked later.

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
  if earliest then call('HSET', K.pacer(phone), 'minExpiry', earliest) else call('HDEL', K.pacer(phone), 'minExpiry') end
end

local rows = 0
local function look(phone, due_at)
  rows = rows + unpark(phone, a.now)
  local row = phone_row(phone)
  local locked, known_end = is_locked(row, a.now), row[3][10]
  -- Where the last look found none that may go, because of something only the policy knows, this one is not brief.
  local heads, more = head_rows(phone, a.heads, a.now, locked, a.brief and row[3][11] ~= 'IN_TURN')
  add_expired(phone, known_end, heads, locked)
  rows = rows + #heads
  return {row, heads, more and 1 or 0, fleet_free_at(phone, a.now), due_at}
end

-- An operator stopped the dispatchers; `/start` wakes them.
if fleet_flags()[2] == '1' then return {'STOPPED'} end
local due = call('ZRANGEBYSCORE', K.due(), '-inf', a.now, 'WITHSCORES', 'LIMIT', 0, a.limit)
local found, leases = {'OK', false}, {}
for at = 1, #due, 2 do leases[at], leases[at + 1] = a.now + a.lease, due[at] end
-- The leases come first: a phone that cannot be read must not stand at the head for ever, with all others behind it.
if #leases > 0 then call('ZADD', K.due(), unpack(leases)) end
for at = 1, #due, 2 do
  local phone, due_at = due[at], due[at + 1]
  if rows < MOST_ROWS then
    call('HINCRBY', K.pacer(phone), 'version', 1)
    local is_good, seen = pcall(look, phone, due_at)
    if is_good then found[#found + 1] = seen else put_aside(phone, seen, a.now) end
  else
    call('ZADD', K.due(), due_at, phone)
  end
end
found[2] = tonumber(call('ZRANGE', K.due(), 0, 0, 'WITHSCORES')[2] or nil) or false
return found
