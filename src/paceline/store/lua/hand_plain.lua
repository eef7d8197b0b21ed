-- Hands over what is as it was seen, and touches nothing of the rest: why that may not go, and what to do about it, is for hand_off to say.
-- Nearly always that is all of them, so nothing is asked here but whether it holds, for all together.
-- a: now, handoffUntil, leasedUntil, orders [[phone, seen (how the pace it was decided on begins, with its version), pace (as it shall be then,
--      lib/25_pace.lua), entry, and of it task, job, index, to; then session, handed (lib/15_message.lua), single (a single send)]]
--    Only of messages of the first priority that were never claimed, and only where neither a ceiling for the fleet nor a cap for a person is set.
-- Returns the places (from 1) of those that were left, in a plain list.
local ROUTED, HANDED = string.byte('r'), whole(string.byte('h'))
local orders, phones, people, pages = a.orders, {}, {}, {}

-- Something else stands where a job's tasks, its state or its routes should: none of its messages is plain.
local function is_sound(bytes, state, routes) return not (bytes.err or type(state) == 'table' or type(routes) == 'table') end

for place, order in ipairs(orders) do
  phones[place], people[place] = order[1], order[8]
  local page = pages[order[6]] or {reads = {}, places = {}, writes = {}, unrouted = {}}
  local reads, count = page.reads, #page.places
  pages[order[6]], page.places[count + 1] = page, place
  reads[count * 3 + 1], reads[count * 3 + 2], reads[count * 3 + 3] = 'GET', 'u8', '#' .. order[7]
end
local is_routed = {}
for job, page in pairs(pages) do
  local bytes, state = redis.pcall('BITFIELD_RO', K.job_states(job), unpack(page.reads)), redis.pcall('HGET', K.job_run(job), 'state')
  if is_sound(bytes, state, redis.pcall('HLEN', K.job_routes(job))) and state ~= 'PAUSED' then
    for i, place in ipairs(page.places) do is_routed[place] = bytes[i] == ROUTED end
  end
end
local flags = fleet_flags()
local rests = flags[1] == '1' or flags[2] == '1'
local lines, leases = call('HMGET', K.pace(), unpack(phones)), call('ZMSCORE', K.due(), unpack(phones))
local listed = call('ZMSCORE', K.suppressions(), unpack(people))

-- From the head of its queue to the outbox, its message with it. False if another stands there now, or what is there is of another type.
local function take(phone, entry, session, task, handed)
  local queue, outbox, key = K.queue(phone), K.outbox(session), K.message(task)
  local head = redis.pcall('RPOPLPUSH', queue, outbox)
  local fresh = head == entry and redis.pcall('HSET', key, 'entry', entry, 'handed', handed)
  if type(fresh) == 'number' then
    -- Both are new: it was never handed over before. What it waited for in between is past.
    if fresh < 2 then call('HDEL', key, 'waitReason', 'waitUntil') end
    return true
  end
  if type(head) == 'string' then call('RPUSH', queue, call('LPOP', outbox)) end
  return false
end

local left, deadlines, paces_, busy, outboxes = {}, {}, {}, {}, {}
for place, order in ipairs(orders) do
  local phone, seen, line, entry, task, job, index, _, session, handed, single = unpack(order)
  local is_same = is_routed[place] and leases[place] == a.leasedUntil and not (rests or listed[place])
    and string.find(lines[place] or PACE.nothing, seen, 1, true) == 1
  if is_same and take(phone, entry, session, task, handed) then
    -- A single send counts as waiting until here.
    if single then redis.pcall('SREM', K.singles(phone), task) end
    local page, count = pages[job], #busy
    local writes, unrouted = page.writes, page.unrouted
    local written = #unrouted
    writes[written * 4 + 1], writes[written * 4 + 2], writes[written * 4 + 3], writes[written * 4 + 4] = 'SET', 'u8', '#' .. index, HANDED
    unrouted[written + 1], busy[count + 1], outboxes[count + 1] = index, phone, session
    deadlines[count * 2 + 1], deadlines[count * 2 + 2] = a.handoffUntil, task
    paces_[count * 2 + 1], paces_[count * 2 + 2] = phone, line
  else
    left[#left + 1] = place
  end
end
if #busy > 0 then
  call('ZADD', K.deadlines(), unpack(deadlines))
  call('HSET', K.pace(), unpack(paces_))
  call('ZREM', K.due(), unpack(busy))
  for job, page in pairs(pages) do
    if #page.unrouted > 0 then
      call('BITFIELD', K.job_states(job), unpack(page.writes))
      call('HDEL', K.job_routes(job), unpack(page.unrouted))
    end
  end
  wake('outbox:' .. table.concat(outboxes, ','))
end
return left
