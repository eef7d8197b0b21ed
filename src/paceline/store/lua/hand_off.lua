-- Applies what the policy decided for due phones, each on its own: first its head tasks that do not go, then send, wait or idle.
-- a: now, handoffUntil, orders [[phone, seen (how the pace it was decided on begins, with its version), leasedUntil, steps (false if none) [{kind,
--      entry, reason?, untilMs?} …], pace (as it shall be then, lib/25_pace.lua; false if nothing was decided), final]]
--    final, in this order; what is only written is text:
--      send, entry, and of it task, to, priority, then session, sendAfter, day, unitDay (false, or the day whose unit it takes, if that is
--        another), single (a single send), api (by HTTP, not straight to the outbox)
--      | wait, until, reason | idle | refused, code, until (it must not go, by what it was decided on, or CHANGED, since hand_plain left it: looked
--        at again then)
-- Returns for each order, in a plain list, OK | STALE (somebody looked later) | CLOCK_BACK | PAUSED | STOPPED | UNSETTLED | HEAD_CHANGED |
-- NOT_WAITING | SUPPRESSED | JOB_PAUSED | FREQUENCY | GLOBAL | CAP | CHANGED (see above) | ERROR (what is stored of this phone cannot be read).
-- The refusals after STALE leave the phone due soon; nothing of the send was applied.
local END = {expire = 'E', suppress = 'O', fail = 'F'}
local NOW = ms(a.now)

-- It lies in no queue any more, and has ended or ends now.
local function let_go(phone, task)
  call('SREM', K.singles(phone), task)
  unroute(split(task))
  retire(task)
end

local function park(phone, item, step)
  if not move(item.task, 'p', a.now) then return let_go(phone, item.task) end
  park_until(phone, step.untilMs, step.entry)
  call('HSET', K.message(item.task), 'to', item.to, 'phone', phone, 'waitReason', step.reason, 'waitUntil', ms(step.untilMs))
end

local function finish(phone, item, step)
  let_go(phone, item.task)
  if not END[step.kind] or not move(item.task, END[step.kind], a.now) then return end
  call('HSET', K.message(item.task), 'to', item.to, 'phone', phone, 'endedAt', NOW, 'errorCode', step.reason)
  call('EXPIRE', K.message(item.task), C.message_ttl)
  if step.kind == 'fail' then dead_letter(item.task, a.now, step.reason, 'refused before sending') end
end

local function clear(phone, step)
  local item = item_of(step.entry)
  -- A job that was resumed since the look must not be put aside for minutes.
  if step.reason == 'JOB_PAUSED' and not is_paused((split(item.task))) then return end
  if call('LREM', queue_key(phone, item.priority), -1, step.entry) == 0 then return end
  if step.kind == 'park' then park(phone, item, step) else finish(phone, item, step) end
end

-- A place in the line for the fleet's slots is kept only as long as that is what the phone waits for.
local function keep_place(phone, kind, reason)
  if reason == 'GLOBAL_LIMIT' then
    if C.global_rpm > 0 then wait_for_fleet(phone) end
  elseif kind ~= 'send' then
    leave_line(phone)
  end
end

local function wait(phone, until_text, line)
  keep_line(phone, line)
  -- A message that expires or is parked while the phone waits has its look at its own time, not when the phone wakes.
  local until_ms, _, parked = tonumber(until_text), first_parked(phone)
  call('ZADD', K.due(), ms(math.min(until_ms, tonumber(marks_of(phone).minExpiry) or until_ms, parked or until_ms)), phone)
  return 'OK'
end

-- Why the task may not be handed over after all, and when to look again; nil if it may.
local function refusal(phone, task, to, send_after, byte)
  local fleet = fleet_flags()
  if fleet[1] == '1' then return 'PAUSED', a.now + 1000 end
  if fleet[2] == '1' then return 'STOPPED', a.now + 1000 end
  if byte == '' or not has('rt', byte) then return 'NOT_WAITING', a.now end
  if is_suppressed(to, task) then return 'SUPPRESSED', a.now end
  if is_paused((split(task))) then return 'JOB_PAUSED', a.now end
  -- Two numbers may have looked at the same person at once; the next look parks the message.
  if frequency_free_at(to, task, a.now) > a.now then return 'FREQUENCY', a.now end
  if C.global_rpm == 0 then return nil end
  local free_at = fleet_free_at(phone, tonumber(send_after))
  if free_at > tonumber(send_after) then
    local p = pace_of(phone)
    p.waitReason, p.waitUntil = 'GLOBAL_LIMIT', ms(free_at)
    wait_for_fleet(phone)
    return 'GLOBAL', math.max(a.now + 1000, free_at - C.lead_ms)
  end
end

-- Moves the task from the head of its queue to the outbox, or takes it out of there to be posted. False if another stands there now.
local function take_head(phone, priority, entry, session, api)
  local key, outbox = queue_key(phone, tonumber(priority)), K.outbox(session)
  if api then
    local head = call('RPOP', key)
    if head and head ~= entry then call('RPUSH', key, head) end
    return head == entry
  end
  local head = call('RPOPLPUSH', key, outbox)
  if head and head ~= entry then call('RPUSH', key, call('LPOP', outbox)) end
  return head == entry
end

-- What is written for all phones of the batch together.
local busy, deadlines, outboxes, is_handing = {}, {}, {}, false

-- The task was taken from its queue.
local function hand_over(phone, line, byte, entry, task, to, session, send_after, day, unit_day, single, api)
  -- Before anything else is written: whatever goes wrong with this one, its deadline will be there.
  deadlines[#deadlines + 1], deadlines[#deadlines + 2] = a.handoffUntil, task
  keep_line(phone, line)
  move(task, 'h', a.now, byte)
  unroute(split(task))
  -- A single send counts as waiting until here.
  if single then call('SREM', K.singles(phone), task) end
  local key = K.message(task)
  local fresh = call('HSET', key, 'entry', entry, 'handed', handed_text(phone, session, send_after, NOW, day, unit_day))
  -- Both are new: it was never handed over before. What it waited for in between is past.
  if fresh < 2 then call('HDEL', key, 'waitReason', 'waitUntil') end
  reserve_fleet(phone, task, a.now)
  count_for_person(to, 'h:' .. task, send_after)
  if api then
    call('HSET', key, 'handing', 1)
    call('ZADD', K.handing(), NOW, task)
    is_handing = true
  else
    outboxes[#outboxes + 1] = session
  end
  busy[#busy + 1] = phone
end

local function send(phone, line, final)
  local _, entry, task, to, priority, session, send_after, day, unit_day, single, api = unpack(final)
  local byte = byte_of(task)
  local code, again_at = refusal(phone, task, to, send_after, byte)
  if not code and not take_head(phone, priority, entry, session, api) then code, again_at = 'HEAD_CHANGED', a.now end
  if code then
    local p = pace_of(phone)
    p.lastNow = NOW
    put_pace(phone, p)
    call('ZADD', K.due(), ms(again_at), phone)
    return code
  end
  hand_over(phone, line, byte, entry, task, to, session, send_after, day, unit_day, single, api)
  return 'OK'
end

-- Something changed since the look, or something with little time left came with it: the next look is now.
local function void(phone, leased_until, score)
  if not string.find(text_of(PACE, phone), '^%["%d+","%d*","[^"]*"') then error('what is kept of its pace cannot be read') end
  if score and tonumber(score) <= tonumber(leased_until) then call('ZADD', K.due(), 'LT', NOW, phone) end
  return 'STALE'
end

local function apply(order, score)
  local phone, seen, leased_until, steps, line, final = unpack(order)
  local is_same = string.find(text_of(PACE, phone), seen, 1, true) == 1
  -- The clock went back: nothing was decided, and nothing but its time changes.
  if is_same and not line then
    call('ZADD', K.due(), final[3], phone)
    return final[2]
  end
  if not is_same or score ~= leased_until then return void(phone, leased_until, score) end
  if steps then
    for _, step in ipairs(steps) do clear(phone, step) end
  end
  local kind = final[1]
  keep_place(phone, kind, final[3])
  if kind == 'send' then return send(phone, line, final) end
  if kind == 'wait' then return wait(phone, final[2], line) end
  keep_line(phone, line)
  if kind == 'refused' then
    call('ZADD', K.due(), final[3], phone)
    return final[2]
  end
  score_again(phone, a.now)
  return 'OK'
end

local codes, phones, tasks, people = {}, {}, {}, {}
for i, order in ipairs(a.orders) do
  local final = order[6]
  phones[i] = order[1]
  if final[1] == 'send' then tasks[#tasks + 1], people[#people + 1] = final[3], final[4] end
end
gather(tasks)
look_up_listed(people)
look_up(PACE, phones)
local leases = #phones > 0 and call('ZMSCORE', K.due(), unpack(phones))
for i, order in ipairs(a.orders) do
  local is_good, code = pcall(apply, order, leases[i])
  if not is_good then put_aside(phones[i], code, a.now) end
  codes[i] = is_good and code or 'ERROR'
end
if #deadlines > 0 then call('ZADD', K.deadlines(), unpack(deadlines)) end
write_held()
if #busy > 0 then call('ZREM', K.due(), unpack(busy)) end
for job, problem in pairs(write_gathered()) do
  for i, order in ipairs(a.orders) do
    if codes[i] == 'OK' and order[6][1] == 'send' and split(order[6][3]) == job then
      put_aside(phones[i], problem, a.now)
      codes[i] = 'ERROR'
    end
  end
end
if #outboxes > 0 then wake('outbox:' .. table.concat(outboxes, ',')) end
if is_handing then wake('handing') end
return codes
