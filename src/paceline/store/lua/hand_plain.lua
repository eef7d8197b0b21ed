-- Hands over what is as it was seen, and touches nothing of the rest: why that may not go, and what to do about it, is for hand_off to say.
-- Nearly always that is all of them, so nothing is asked here but whether it holds, for all together.
-- a: leasedUntil; of each phones, seen (how the pace it was decided on begins, with its version), people, entries, sessions, tasks, handed (lib/15_message.lua),
--    paces (phone and its pace as it shall be, lib/25_pace.lua), deadlines (time and task); singles (places of single sends);
--    jobs [[job, first (place of its first task; the others follow), indexes, reads, writes (of their states, for BITFIELD)]]
--    Only of messages of the first priority that were never claimed, and only where neither a ceiling for the fleet nor a cap for a person is set.
-- Returns the places (from 1) of those that were left, in a plain list.
local ROUTED = string.byte('r')
local phones, sessions, is_routed = a.phones, a.sessions, {}

-- Something else stands where a job's tasks, its state or its routes should: none of its messages is plain.
local function is_sound(bytes, state, routes) return not (bytes.err or type(state) == 'table' or type(routes) == 'table') end

for _, page in ipairs(a.jobs) do
  local job, first, _, reads = unpack(page)
  local bytes, state = redis.pcall('BITFIELD_RO', K.job_states(job), unpack(reads)), redis.pcall('HGET', K.job_run(job), 'state')
  if is_sound(bytes, state, redis.pcall('HLEN', K.job_routes(job))) and state ~= 'PAUSED' then
    for i, byte in ipairs(bytes) do is_routed[first + i - 1] = byte == ROUTED end
  end
end
local flags = fleet_flags()
local rests = flags[1] == '1' or flags[2] == '1'
local lines, leases = call('HMGET', K.pace(), unpack(phones)), call('ZMSCORE', K.due(), unpack(phones))
local listed = call('ZMSCORE', K.suppressions(), unpack(a.people))

-- From the head of its queue to the outbox, its message with it. False if another stands there now, or what is there is of another type.
local function take(place, phone)
  local queue, outbox, key, entry = K.queue(phone), K.outbox(sessions[place]), K.message(a.tasks[place]), a.entries[place]
  local head = redis.pcall('RPOPLPUSH', queue, outbox)
  local fresh = head == entry and redis.pcall('HSET', key, 'entry', entry, 'handed', a.handed[place])
  if type(fresh) == 'number' then
    -- Both are new: it was never handed over before. What it waited for in between is past.
    if fresh < 2 then call('HDEL', key, 'waitReason', 'waitUntil') end
    return true
  end
  if type(head) == 'string' then call('RPUSH', queue, call('LPOP', outbox)) end
  return false
end

for place, phone in ipairs(phones) do
  local is_same = is_routed[place] and leases[place] == a.leasedUntil and not (rests or listed[place])
    and string.find(lines[place] or PACE.nothing, a.seen[place], 1, true) == 1
  if not (is_same and take(place, phone)) then leave(place) end
end
if #left == #phones then return left end

-- A single send counts as waiting until here.
for _, place in ipairs(a.singles) do
  if not is_left[place] then redis.pcall('SREM', K.singles(phones[place]), a.tasks[place]) end
end
call('ZADD', K.deadlines(), unpack(of_done(a.deadlines, 2, 1)))
call('HSET', K.pace(), unpack(of_done(a.paces, 2, 1)))
call('ZREM', K.due(), unpack(of_done(phones, 1, 1)))
for _, page in ipairs(a.jobs) do
  local job, first, indexes, _, writes = unpack(page)
  local unrouted = of_done(indexes, 1, first)
  if #unrouted > 0 then
    call('BITFIELD', K.job_states(job), unpack(of_done(writes, 4, first)))
    call('HDEL', K.job_routes(job), unpack(unrouted))
  end
end
wake('outbox:' .. table.concat(of_done(sessions, 1, 1), ','))
return left
