-- Settles what became of a handed-over task, but for a proof that it went out (prove_sent): its state, the phone's pacing, the day's unit,
-- statistics, the job's counters and end.
-- a: task, outcome, now, from? (bytes it must be in), token? and epoch?+session? (a worker's word), overdue? (its deadline must have passed)
--    retry:    at, pinned, onWire, unitBack, code, message, crash?, cooldownUntil?, recipientOnly?
--    failed:   code, message, onWire, unitBack, cooldownUntil?, crash?, recipientOnly?, lockedUntil? (the platform refused)
--    returned: reason, crash?      back to the head, no attempt counted
--    parked:   reason, untilMs     expired | suppressed: reason     (refused at the gate)
--    unknown:  reason              no word before the lease ended: the phone is freed, the worker is asked
--    cleared:                      it ended while it lay in the outbox (canceled), or went back only half: what it still holds is freed
-- Returns OK {state} | STALE {state} (not in the state, token or epoch it was decided for) | UNKNOWN_TASK.
local job = split(a.task)
local byte = job and byte_of(a.task) or ''
if byte == '' then return reply('UNKNOWN_TASK') end
local key = K.message(a.task)
local about = message_of(a.task)
local phone, session = about.phone, about.sessionId

local function ended() call('EXPIRE', key, C.message_ttl) end

-- It was decided for a certain state; if that is gone, so is the decision.
if not has(a.from, byte) then return reply('STALE', {state = byte}) end
if a.token and tonumber(about.token or '0') ~= a.token then return reply('STALE', {state = byte}) end
if a.epoch and not is_newest(session, a.epoch) then return reply('STALE', {state = byte}) end
if a.overdue and tonumber(call('ZSCORE', K.deadlines(), a.task) or a.now + 1) > a.now then return reply('STALE', {state = byte}) end

-- Before anything is written: what could not go back would wait in no queue.
if a.outcome == 'returned' or a.outcome == 'parked' then read_entry(about.entry) end
if phone then must_be_readable(phone) end

-- Which claim made the outcome unknown is kept: if that same claim turns out untouched, so is the message.
local function may_have_gone_out()
  call('HSET', key, 'maybeSent', 1)
  wrote_to_person(about.to, a.task, a.now)
  call('HSETNX', key, 'maybeSentToken', about.token)
end

-- The next instance's word tells that the one before died; said twice about one claim it is one crash. A lease that ended tells
-- nothing of the kind: the host may have been slow, and a message must not be put aside for that.
local function crashed()
  if about.crashToken ~= about.token then call('HINCRBY', key, 'crashes', 1) end
  call('HSET', key, 'crashToken', about.token)
end

if a.outcome == 'unknown' then
  local expires_at = read_entry(about.entry).expiresAt
  -- It stays in the worker's hands (`processing`): the next claim or hello asks for it. Validity bounds the wait.
  call('ZREM', K.deadlines(), a.task)
  call('ZADD', K.deadlines(), ms(expires_at), a.task)
  move(a.task, 'u', a.now)
  may_have_gone_out()
  call('HSET', key, 'waitReason', 'UNKNOWN_OUTCOME')
  remember(a.task, {at = a.now, what = 'unknown', reason = a.reason})
  free_phone(phone, a.task, about, a.now, true)
  return reply('OK', {state = 'u'})
end

take_out(a.task, about, byte)
if a.crash then crashed() end
if a.unitBack then return_unit(phone, about.unitDay) end
-- What certainly did not go out does not count against the person's patience, unless an earlier try may have.
-- One that was only handed over again has the token of the try before.
local earlier_may = about.maybeSent == '1' and (byte == 'h' or about.maybeSentToken ~= about.token)
if a.unitBack then
  uncount_for_person(about.to, a.task, earlier_may)
elseif a.outcome == 'failed' then
  wrote_to_person(about.to, a.task, a.now)
end
if a.cooldownUntil then
  -- A word that comes late must not shorten a rest that began later.
  local rests = math.max(a.cooldownUntil, tonumber(call('HGET', K.phone(phone), 'cooldownUntil') or '0'))
  call('HSET', K.phone(phone), 'cooldownUntil', rests)
  forget_facts(phone)
  tell('session.restriction', a.now, 's', session, 'phone', phone, 'kind', 'COOLDOWN', 'until', ms(rests))
  incident('PHONE_COOLDOWN', a.now, {phone = phone, sessionId = session, ['until'] = a.cooldownUntil, code = a.code})
end
if a.lockedUntil then restrict(phone, session, 'TIME_LOCKED', a.lockedUntil, a.now, true) end

local function failed_attempt()
  call('HSET', key, 'errorCode', a.code, 'errorMessage', a.message)
  call('HINCRBY', key, 'failures', 1)
  note_failure(phone, session, a.now, a.recipientOnly)
  remember(a.task, {at = a.now, what = a.pinned and 'unknown' or a.outcome, code = a.code, message = a.message})
  incident('SEND_FAILED', a.now, {taskId = a.task, phone = phone, sessionId = session, code = a.code})
end

-- The worker's word that this claim sent nothing takes back the doubt that this claim raised.
local function sent_nothing()
  if about.maybeSentToken == about.token then call('HDEL', key, 'maybeSent', 'maybeSentToken', 'pinned') end
end

-- It waits again; but what comes back to a job that was canceled meanwhile ends like all that waited there.
local function waits_again(to)
  call('HDEL', key, 'waitReason', 'waitUntil')
  move(a.task, to, a.now)
  local state = call('HGET', K.job_run(job), 'state')
  if state ~= 'CANCELED' and state ~= 'FAILED' then return true end
  end_canceled(a.task, a.now)
  return false
end

-- What was in a queue before goes back to its head; one that had an attempt is a retry there.
local function back_to_queue()
  local attempts = tonumber(about.attempts or '0')
  if byte ~= 'h' then
    attempts = call('HINCRBY', key, 'attempts', -1)
    sent_nothing()
  end
  if not waits_again(attempts > 0 and 't' or 'r') then return end
  put_back(phone, {about.entry})
  if unsettled_of(phone) ~= a.task then make_due(phone, a.now) end
end

local OUTCOME = {}
function OUTCOME.retry()
  failed_attempt()
  if a.pinned then
    may_have_gone_out()
    call('HSET', key, 'pinned', session)
  else
    sent_nothing()
  end
  if not waits_again('t') then return end
  local member = cjson.encode({sessionId = session, phone = phone, task = a.task})
  call('ZADD', K.task_retry(), a.at, member)
  call('HSET', key, 'retryMember', member, 'waitReason', 'RETRY', 'waitUntil', a.at)
end
function OUTCOME.failed()
  failed_attempt()
  move(a.task, 'F', a.now)
  call('SET', K.task_status(a.task), 'FAILED', 'NX', 'EX', C.message_ttl)
  call('HSET', key, 'endedAt', a.now)
  call('HDEL', key, 'waitReason', 'waitUntil')
  count_fleet('failed', a.now, 1)
  count_day(session, a.statsDay, 'failed', 1)
  dead_letter(a.task, a.now, a.code, a.message)
  ended()
end
function OUTCOME.returned()
  remember(a.task, {at = a.now, what = 'returned', reason = a.reason})
  back_to_queue()
end
function OUTCOME.parked()
  local until_ms = math.min(a.untilMs, read_entry(about.entry).expiresAt)
  move(a.task, 'p', a.now)
  park_until(phone, until_ms, about.entry)
  call('HSET', key, 'waitReason', a.reason, 'waitUntil', until_ms)
end
local function refused(to)
  return function()
    move(a.task, to, a.now)
    call('HSET', key, 'endedAt', a.now, 'errorCode', a.reason)
    ended()
  end
end
function OUTCOME.cleared()
  if not has(TERMINAL, byte) then return end
  -- Two may find it ended at once; the unit goes back with the phone, and so only once.
  if unsettled_of(phone) == a.task then
    return_unit(phone, about.unitDay)
    uncount_for_person(about.to, a.task, about.maybeSent == '1')
  end
  ended()
end
OUTCOME.expired = refused('E')
OUTCOME.suppressed = refused('O')

OUTCOME[a.outcome]()
free_phone(phone, a.task, about, a.now, a.onWire)
return reply('OK', {state = byte_of(a.task)})
