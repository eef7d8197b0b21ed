-- Applies what the policy decided for due phones, each on its own: first its head tasks that do not go, then send, wait or idle.
-- a: now, orders [{phone, version, leasedUntil, steps? [{kind, entry, reason?, untilMs?}], final}]
--    final: {kind: send, entry (and of it task, to, priority, expiresAt), session, sendAfter, gapMs, gapKey, day, cap?, handoffUntil,
--            single? (a single send), api? (by HTTP, not straight to the outbox)}
--         | {kind: wait, until, reason, gapMs?, gapKey?} | {kind: idle}
-- Returns OK {codes}, for each order OK | STALE (somebody looked later) | CLOCK_BACK | PAUSED | STOPPED | UNSETTLED | HEAD_CHANGED |
-- NOT_WAITING | SUPPRESSED | JOB_PAUSED | FREQUENCY | GLOBAL | CAP | ERROR (what is stored of this phone cannot be read).
-- The refusals after STALE leave the phone due soon; nothing of the send was applied.
local END = {expire = 'E', suppress = 'O', fail = 'F'}
local NOW = ms(a.now)

local function park(phone, item, step)
  if not move(item.task, 'p', a.now) then return end
  park_until(phone, step.untilMs, step.entry)
  call('HSET', K.message(item.task), 'to', item.to, 'phone', phone, 'waitReason', step.reason, 'waitUntil', ms(step.untilMs))
end

local function finish(phone, item, step)
  call('SREM', K.singles(phone), item.task)
  unroute(split(item.task))
  retire(item.task)
  if not END[step.kind] or not move(item.task, END[step.kind], a.now) then return end
  call('HSET', K.message(item.task), 'to', item.to, 'phone', phone, 'endedAt', NOW, 'errorCode', step.reason)
  call('EXPIRE', K.message(item.task), C.message_ttl)
  if step.kind == 'fail' then dead_letter(item.task, a.now, step.reason, 'refused before sending') end
end

local function clear(phone, step)
  local item = cjson.decode(step.entry)
  -- A job that was resumed since the look must not be put aside for minutes.
  if step.reason == 'JOB_PAUSED' and not is_paused((split(item.task))) then return end
  if call('LREM', queue_key(phone, item.priority), -1, step.entry) == 0 then return end
  if step.kind == 'park' then park(phone, item, step) else finish(phone, item, step) end
end

-- This look was used: a second order from it is stale. With it goes what else there is to write about the phone.
local function mark(phone, version, ...) call('HSET', K.pacer(phone), 'lastNow', NOW, 'version', whole(version + 1), ...) end

-- A place in the line for the fleet's slots is kept only as long as that is what the phone waits for.
local function keep_place(phone, final)
  if final.reason == 'GLOBAL_LIMIT' then
    if C.global_rpm > 0 then wait_for_fleet(phone) end
  elseif final.kind ~= 'send' then
    leave_line(phone)
  end
end

local function wait(phone, final, version, expiry)
  if final.gapMs then
    mark(phone, version, 'waitReason', final.reason, 'waitUntil', ms(final['until']), 'gapMs', ms(final.gapMs), 'gapKey', final.gapKey)
  else
    mark(phone, version, 'waitReason', final.reason, 'waitUntil', ms(final['until']))
  end
  -- A message that expires or is parked while the phone waits has its look at its own time, not when the phone wakes.
  local _, parked = first_parked(phone)
  expiry = tonumber(expiry or nil)
  call('ZADD', K.due(), ms(math.min(final['until'], expiry or final['until'], parked or final['until'])), phone)
  return 'OK'
end

-- Why the task may not be handed over after all, and when to look again; nil if it may.
local function refusal(phone, final, byte, unsettled)
  local fleet = fleet_flags()
  if fleet[1] == '1' then return 'PAUSED', a.now + 1000 end
  if fleet[2] == '1' then return 'STOPPED', a.now + 1000 end
  if unsettled then return 'UNSETTLED', a.now + 60000 end
  if byte == '' or not has('rt', byte) then return 'NOT_WAITING', a.now end
  if is_suppressed(final.to, final.task) then return 'SUPPRESSED', a.now end
  if is_paused((split(final.task))) then return 'JOB_PAUSED', a.now end
  -- Two numbers may have looked at the same person at once; the next look parks the message.
  if frequency_free_at(final.to, final.task, a.now) > a.now then return 'FREQUENCY', a.now end
  local free_at = fleet_free_at(phone, final.sendAfter)
  if free_at > final.sendAfter then
    wait_for_fleet(phone)
    call('HSET', K.pacer(phone), 'waitReason', 'GLOBAL_LIMIT', 'waitUntil', free_at)
    return 'GLOBAL', math.max(a.now + 1000, free_at - C.lead_ms)
  end
end

-- Takes the task from the head of its queue; false if another stands there now.
local function take_head(phone, final)
  local key = queue_key(phone, final.priority)
  local head = call('RPOP', key)
  if head == final.entry then return true end
  if head then call('RPUSH', key, head) end
  return false
end

-- What is written for all phones of the batch together.
local busy, deadlines, outboxes, is_handing = {}, {}, {}, false

local function hand_over(phone, final, version, byte, day, used, tidied)
  local task = final.task
  -- Before anything else is written: whatever goes wrong with this one, its deadline will be there.
  deadlines[#deadlines + 1], deadlines[#deadlines + 2] = ms(final.handoffUntil), task
  mark(phone, version, 'unsettled', task, 'gapMs', ms(final.gapMs), 'gapKey', final.gapKey, 'capDay', day, 'capUsed', whole(used + 1),
    'waitReason', '', 'routedTidy', tidy_mark(final.session, a.now))
  move(task, 'h', a.now, byte)
  unroute(split(task))
  -- A single send counts as waiting until here.
  if final.single then call('SREM', K.singles(phone), task) end
  local fresh = call('HSET', K.message(task), 'entry', final.entry, 'to', final.to, 'phone', phone, 'sessionId', final.session,
    'expiresAt', ms(final.expiresAt), 'handedOffAt', NOW, 'sendAfter', ms(final.sendAfter), 'day', final.day, 'unitDay', day)
  -- All nine fields are new: nobody wrote of this message before.
  if fresh < 9 then call('HDEL', K.message(task), 'waitReason', 'waitUntil') end
  reserve_fleet(phone, task, a.now)
  count_for_person(final.to, 'h:' .. task, final.sendAfter)
  count_minute(final.session, 'routed60s', task, a.now, tidied)
  if final.api then
    call('HSET', K.message(task), 'handing', 1)
    call('ZADD', K.handing(), NOW, task)
    is_handing = true
  else
    call('LPUSH', K.outbox(final.session), task)
    outboxes[#outboxes + 1] = final.session
  end
  busy[#busy + 1] = phone
end

local function send(phone, final, version, known)
  local byte = byte_of(final.task)
  local code, again_at = refusal(phone, final, byte, filled(known[3]))
  -- A day counted further than this one (the phone's zone was changed) keeps counting: it can only be too strict.
  local day, used = final.day, 0
  if known[4] and known[4] >= final.day then day, used = known[4], tonumber(known[5] or nil) or 0 end
  if not code and final.cap and used >= final.cap then code, again_at = 'CAP', a.now + 1000 end
  if not code and not take_head(phone, final) then code, again_at = 'HEAD_CHANGED', a.now end
  if code then
    mark(phone, version)
    call('ZADD', K.due(), ms(again_at), phone)
    return code
  end
  hand_over(phone, final, version, byte, day, used, known[9])
  return 'OK'
end

local function apply(order, leased_until)
  local phone, final = order.phone, order.final
  local known = call('HMGET', K.pacer(phone), 'version', 'lastNow', 'unsettled', 'capDay', 'capUsed', 'minExpiry', 'sends', 'gapMs', 'routedTidy')
  if tonumber(known[1] or '0') ~= order.version then return 'STALE' end
  if tonumber(known[2] or '0') > a.now then
    call('ZADD', K.due(), known[2], phone)
    return 'CLOCK_BACK'
  end
  local score = tonumber(leased_until or nil)
  if score ~= order.leasedUntil then
    -- Something with little time left came since the look, or with it: the next look is now.
    if score and score < order.leasedUntil then call('ZADD', K.due(), 'LT', NOW, phone) end
    return 'STALE'
  end
  for _, step in ipairs(order.steps or {}) do clear(phone, step) end
  keep_place(phone, final)
  if final.kind == 'send' then return send(phone, final, order.version, known) end
  if final.kind == 'wait' then return wait(phone, final, order.version, known[6]) end
  mark(phone, order.version)
  score_again(phone, a.now, known[7], known[8])
  return 'OK'
end

local codes, phones, tasks, people = {}, {}, {}, {}
for i, order in ipairs(a.orders) do
  local final = order.final
  phones[i] = order.phone
  if final.kind == 'send' then tasks[#tasks + 1], people[#people + 1] = final.task, final.to end
end
gather(tasks)
look_up_listed(people)
local leases = #phones > 0 and call('ZMSCORE', K.due(), unpack(phones))
for i, order in ipairs(a.orders) do
  local is_good, code = pcall(apply, order, leases[i])
  if not is_good then put_aside(order.phone, code, a.now) end
  codes[i] = is_good and code or 'ERROR'
end
if #deadlines > 0 then call('ZADD', K.deadlines(), unpack(deadlines)) end
if #busy > 0 then call('ZREM', K.due(), unpack(busy)) end
local failed = write_gathered()
for i, order in ipairs(a.orders) do
  local problem = codes[i] == 'OK' and order.final.task and failed[split(order.final.task)]
  if problem then
    put_aside(order.phone, problem, a.now)
    codes[i] = 'ERROR'
  end
end
if #outboxes > 0 then wake('outbox:' .. table.concat(outboxes, ',')) end
if is_handing then wake('handing') end
return reply('OK', {codes = codes})
