-- Applies what the policy decided for one due phone: first its head tasks that do not go, then send, wait or idle.
-- a: phone, version, now, steps? [{kind, entry, reason?, untilMs?}], final
--    final: {kind: send, entry, session, sendAfter, gapMs, gapKey, day, cap?, handoffUntil, api? (by HTTP, not straight to the outbox)}
--         | {kind: wait, until, reason, gapMs?, gapKey?} | {kind: idle}
-- Returns OK | STALE (somebody looked later) | CLOCK_BACK | PAUSED | STOPPED | UNSETTLED | HEAD_CHANGED | NOT_WAITING | SUPPRESSED | JOB_PAUSED |
-- FREQUENCY | GLOBAL | CAP.
-- The refusals after STALE leave the phone due soon; nothing of the send was applied.
local pacer, final = K.pacer(a.phone), a.final
if tonumber(call('HGET', pacer, 'version') or '0') ~= a.version then return reply('STALE') end
if tonumber(call('HGET', pacer, 'lastNow') or '0') > a.now then
  call('ZADD', K.due(), call('HGET', pacer, 'lastNow'), a.phone)
  return reply('CLOCK_BACK')
end
call('HSET', pacer, 'lastNow', a.now)
call('HINCRBY', pacer, 'version', 1)

local END = {expire = 'E', suppress = 'O', fail = 'F'}

local function park(item, step)
  if not move(item.task, 'p', a.now) then return end
  call('ZADD', K.parked(a.phone), step.untilMs, step.entry)
  call('HSET', K.message(item.task), 'to', item.to, 'phone', a.phone, 'waitReason', step.reason, 'waitUntil', step.untilMs)
end

local function finish(item, step)
  local job, index = split(item.task)
  call('SREM', K.singles(a.phone), item.task)
  call('HDEL', K.job_routes(job), index)
  retire(item.task)
  if not END[step.kind] or not move(item.task, END[step.kind], a.now) then return end
  call('HSET', K.message(item.task), 'to', item.to, 'phone', a.phone, 'endedAt', a.now, 'errorCode', step.reason)
  call('EXPIRE', K.message(item.task), C.message_ttl)
  if step.kind == 'fail' then dead_letter(item.task, a.now, step.reason, 'refused before sending') end
end

for _, step in ipairs(a.steps or {}) do
  local item = cjson.decode(step.entry)
  -- A job that was resumed since the look must not be put aside for minutes.
  local is_over = step.reason == 'JOB_PAUSED' and not job_is_paused((split(item.task)))
  if not is_over and call('LREM', queue_key(a.phone, item.priority), -1, step.entry) > 0 then
    if step.kind == 'park' then park(item, step) else finish(item, step) end
  end
end

-- A place in the line for the fleet's slots is kept only as long as that is what the phone waits for.
if C.global_rpm > 0 then
  if final.reason == 'GLOBAL_LIMIT' then
    wait_for_fleet(a.phone)
  elseif final.kind ~= 'send' then
    call('ZREM', K.fleet_waiting(), a.phone)
  end
end

local function refuse(code, again_at)
  call('ZADD', K.due(), again_at, a.phone)
  return reply(code)
end

if final.kind == 'idle' then
  score_again(a.phone, a.now)
  return reply('OK')
end
if final.kind == 'wait' then
  call('HSET', K.phone(a.phone), 'waitReason', final.reason, 'waitUntil', final['until'])
  if final.gapMs then call('HSET', pacer, 'gapMs', final.gapMs, 'gapKey', final.gapKey) end
  -- A message that expires or is parked while the phone waits has its look at its own time, not when the phone wakes.
  local expiry = tonumber(call('HGET', pacer, 'minExpiry') or nil)
  local parked = tonumber(call('ZRANGE', K.parked(a.phone), 0, 0, 'WITHSCORES')[2] or nil)
  call('ZADD', K.due(), math.min(final['until'], expiry or final['until'], parked or final['until']), a.phone)
  return reply('OK')
end

local fleet = call('HMGET', K.fleet(), 'paused', 'stopped')
if fleet[1] == '1' then return refuse('PAUSED', a.now + 1000) end
if fleet[2] == '1' then return refuse('STOPPED', a.now + 1000) end
if call('HGET', pacer, 'unsettled') then return refuse('UNSETTLED', a.now + 60000) end
local item = cjson.decode(final.entry)
local key = queue_key(a.phone, item.priority)
if call('LINDEX', key, -1) ~= final.entry then return refuse('HEAD_CHANGED', a.now) end
if not has('rt', byte_of(item.task)) then return refuse('NOT_WAITING', a.now) end
if is_suppressed(item.to, item.task) then return refuse('SUPPRESSED', a.now) end
if job_is_paused((split(item.task))) then return refuse('JOB_PAUSED', a.now) end
-- Two numbers may have looked at the same person at once; the next look parks the message.
if frequency_free_at(item.to, item.task, a.now) > a.now then return refuse('FREQUENCY', a.now) end
local free_at = fleet_free_at(a.phone, final.sendAfter)
if free_at > final.sendAfter then
  wait_for_fleet(a.phone)
  call('HSET', K.phone(a.phone), 'waitReason', 'GLOBAL_LIMIT', 'waitUntil', free_at)
  return refuse('GLOBAL', math.max(a.now + 1000, free_at - C.lead_ms))
end
-- A day counted further than this one (the phone's zone was changed) keeps counting: it can only be too strict.
local counted = call('HMGET', pacer, 'capDay', 'capUsed')
local day, used = final.day, 0
if counted[1] and counted[1] >= final.day then day, used = counted[1], tonumber(counted[2]) end
if final.cap and used >= final.cap then return refuse('CAP', a.now + 1000) end

call('RPOP', key)
move(item.task, 'h', a.now)
local job, index = split(item.task)
call('HDEL', K.job_routes(job), index)
call('SREM', K.singles(a.phone), item.task)
call('HSET', pacer, 'unsettled', item.task, 'gapMs', final.gapMs, 'gapKey', final.gapKey, 'capDay', day, 'capUsed', used + 1)
call('HSET', K.message(item.task), 'entry', final.entry, 'to', item.to, 'phone', a.phone, 'sessionId', final.session,
  'expiresAt', item.expiresAt, 'handedOffAt', a.now, 'sendAfter', final.sendAfter, 'day', final.day, 'unitDay', day)
call('HDEL', K.message(item.task), 'waitReason', 'waitUntil')
call('HDEL', K.phone(a.phone), 'waitReason', 'waitUntil')
reserve_fleet(a.phone, item.task, a.now)
count_for_person(item.to, 'h:' .. item.task, final.sendAfter)
count_minute(final.session, 'routed60s', item.task, a.now)
if final.api then
  call('HSET', K.message(item.task), 'handing', 1)
  call('ZADD', K.handing(), a.now, item.task)
else
  call('LPUSH', K.outbox(final.session), item.task)
end
call('ZADD', K.deadlines(), final.handoffUntil, item.task)
call('ZREM', K.due(), a.phone)
wake(final.api and 'handing' or 'outbox:' .. final.session)
return reply('OK')
