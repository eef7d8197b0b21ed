-- Applies what the policy decided for due phones, each on its own: first its head tasks that do not go, then send, wait or idle.
-- a: now, orders [{phone, version, steps? [{kind, entry, reason?, untilMs?}], final}]
--    final: {kind: send, entry, session, sendAfter, gapMs, gapKey, day, cap?, handoffUntil, api? (by HTTP, not straight to the outbox)}
--         | {kind: wait, until, reason, gapMs?, gapKey?} | {kind: idle}
-- Returns OK {codes}, for each order OK | STALE (somebody looked later) | CLOCK_BACK | PAUSED | STOPPED | UNSETTLED | HEAD_CHANGED |
-- NOT_WAITING | SUPPRESSED | JOB_PAUSED | FREQUENCY | GLOBAL | CAP | ERROR (what is stored of this phone cannot be read).
-- The refusals after STALE leave the phone due soon; nothing of the send was applied.
local END = {expire = 'E', suppress = 'O', fail = 'F'}

local function park(phone, item, step)
  if not move(item.task, 'p', a.now) then return end
  call('ZADD', K.parked(phone), step.untilMs, step.entry)
  call('HSET', K.message(item.task), 'to', item.to, 'phone', phone, 'waitReason', step.reason, 'waitUntil', step.untilMs)
end

local function finish(phone, item, step)
  local job, index = split(item.task)
  call('SREM', K.singles(phone), item.task)
  call('HDEL', K.job_routes(job), index)
  retire(item.task)
  if not END[step.kind] or not move(item.task, END[step.kind], a.now) then return end
  call('HSET', K.message(item.task), 'to', item.to, 'phone', phone, 'endedAt', a.now, 'errorCode', step.reason)
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
local function mark(phone, version, ...) call('HSET', K.pacer(phone), 'lastNow', a.now, 'version', version + 1, ...) end

-- A place in the line for the fleet's slots is kept only as long as that is what the phone waits for.
local function keep_place(phone, final)
  if C.global_rpm == 0 then return end
  if final.reason == 'GLOBAL_LIMIT' then
    wait_for_fleet(phone)
  elseif final.kind ~= 'send' then
    call('ZREM', K.fleet_waiting(), phone)
  end
end

local function wait(phone, final, version, expiry)
  if final.gapMs then
    mark(phone, version, 'waitReason', final.reason, 'waitUntil', final['until'], 'gapMs', final.gapMs, 'gapKey', final.gapKey)
  else
    mark(phone, version, 'waitReason', final.reason, 'waitUntil', final['until'])
  end
  -- A message that expires or is parked while the phone waits has its look at its own time, not when the phone wakes.
  local parked = tonumber(call('ZRANGE', K.parked(phone), 0, 0, 'WITHSCORES')[2] or nil)
  expiry = tonumber(expiry or nil)
  call('ZADD', K.due(), math.min(final['until'], expiry or final['until'], parked or final['until']), phone)
  return 'OK'
end

-- Why the task may not be handed over after all, and when to look again; nil if it may.
local function refusal(phone, final, item, byte, unsettled)
  local fleet = fleet_flags()
  if fleet[1] == '1' then return 'PAUSED', a.now + 1000 end
  if fleet[2] == '1' then return 'STOPPED', a.now + 1000 end
  if unsettled then return 'UNSETTLED', a.now + 60000 end
  if call('LINDEX', queue_key(phone, item.priority), -1) ~= final.entry then return 'HEAD_CHANGED', a.now end
  if not has('rt', byte) then return 'NOT_WAITING', a.now end
  if is_suppressed(item.to, item.task) then return 'SUPPRESSED', a.now end
  if is_paused((split(item.task))) then return 'JOB_PAUSED', a.now end
  -- Two numbers may have looked at the same person at once; the next look parks the message.
  if frequency_free_at(item.to, item.task, a.now) > a.now then return 'FREQUENCY', a.now end
  local free_at = fleet_free_at(phone, final.sendAfter)
  if free_at > final.sendAfter then
    wait_for_fleet(phone)
    call('HSET', K.pacer(phone), 'waitReason', 'GLOBAL_LIMIT', 'waitUntil', free_at)
    return 'GLOBAL', math.max(a.now + 1000, free_at - C.lead_ms)
  end
end

-- What is written for all phones of the batch together.
local busy, deadlines, outboxes, is_handing = {}, {}, {}, false

local function hand_over(phone, final, version, item, byte, day, used)
  -- Before anything is written: whatever goes wrong with this one, its deadline will be there.
  deadlines[#deadlines + 1], deadlines[#deadlines + 2] = final.handoffUntil, item.task
  mark(phone, version, 'unsettled', item.task, 'gapMs', final.gapMs, 'gapKey', final.gapKey, 'capDay', day, 'capUsed', used + 1,
    'waitReason', '')
  call('RPOP', queue_key(phone, item.priority))
  move(item.task, 'h', a.now, byte)
  local job, index = split(item.task)
  call('HDEL', K.job_routes(job), index)
  call('SREM', K.singles(phone), item.task)
  local fresh = call('HSET', K.message(item.task), 'entry', final.entry, 'to', item.to, 'phone', phone, 'sessionId', final.session,
    'expiresAt', item.expiresAt, 'handedOffAt', a.now, 'sendAfter', final.sendAfter, 'day', final.day, 'unitDay', day)
  -- All nine fields are new: nobody wrote of this message before.
  if fresh < 9 then call('HDEL', K.message(item.task), 'waitReason', 'waitUntil') end
  reserve_fleet(phone, item.task, a.now)
  count_for_person(item.to, 'h:' .. item.task, final.sendAfter)
  count_minute(final.session, 'routed60s', item.task, a.now)
  if final.api then
    call('HSET', K.message(item.task), 'handing', 1)
    call('ZADD', K.handing(), a.now, item.task)
    is_handing = true
  else
    call('LPUSH', K.outbox(final.session), item.task)
    outboxes[#outboxes + 1] = final.session
  end
  busy[#busy + 1] = phone
end

local function send(phone, final, version, known)
  local item = cjson.decode(final.entry)
  local byte = byte_of(item.task)
  local code, again_at = refusal(phone, final, item, byte, filled(known[3]))
  -- A day counted further than this one (the phone's zone was changed) keeps counting: it can only be too strict.
  local day, used = final.day, 0
  if known[4] and known[4] >= final.day then day, used = known[4], tonumber(known[5]) end
  if not code and final.cap and used >= final.cap then code, again_at = 'CAP', a.now + 1000 end
  if code then
    mark(phone, version)
    call('ZADD', K.due(), again_at, phone)
    return code
  end
  hand_over(phone, final, version, item, byte, day, used)
  return 'OK'
end

local function apply(order)
  local phone, final = order.phone, order.final
  local known = call('HMGET', K.pacer(phone), 'version', 'lastNow', 'unsettled', 'capDay', 'capUsed', 'minExpiry', 'sends', 'gapMs')
  if tonumber(known[1] or '0') ~= order.version then return 'STALE' end
  if tonumber(known[2] or '0') > a.now then
    call('ZADD', K.due(), known[2], phone)
    return 'CLOCK_BACK'
  end
  for _, step in ipairs(order.steps or {}) do clear(phone, step) end
  keep_place(phone, final)
  if final.kind == 'send' then return send(phone, final, order.version, known) end
  if final.kind == 'wait' then return wait(phone, final, order.version, known[6]) end
  mark(phone, order.version)
  score_again(phone, a.now, known[7], known[8])
  return 'OK'
end

local codes = {}
for i, order in ipairs(a.orders) do
  local is_good, code = pcall(apply, order)
  if not is_good then put_aside(order.phone, code, a.now) end
  codes[i] = is_good and code or 'ERROR'
end
if #deadlines > 0 then call('ZADD', K.deadlines(), unpack(deadlines)) end
if #busy > 0 then call('ZREM', K.due(), unpack(busy)) end
if #outboxes > 0 then wake('outbox:' .. table.concat(outboxes, ',')) end
if is_handing then wake('handing') end
return reply('OK', {codes = codes})
