-- What is wished for a session: start, stop, restart, remove, pause or resume. The runner makes it true; what waits for the number stays.
-- a: session, wish, reason (OPERATOR: a person asks; else why the fleet heals itself), by, now, generation? (only if this is still the
-- present one), force? (remove although messages wait)
-- Returns OK {changed, generation, phone} | UNKNOWN_SESSION | REMOVING (it is on its way out) | STALE {generation} (another wish came
-- first) | NOT_WANTED (nobody but an operator starts what is stopped, failed or logged out) | QUARANTINED (the same for a number the
-- platform banned) | TASKS_WAITING {waiting, last}. A wish that is fulfilled already changes nothing; restart is always something new.
local key = K.session(a.session)
local phone = phone_of(a.session)
if not phone then return reply('UNKNOWN_SESSION') end
local known = hash(key)
local change, is_operator = WISH[a.wish], a.reason == 'OPERATOR'
local generation = math.max(1, tonumber(known.generation or '1'))

local function answer(changed) return reply('OK', {changed = changed, generation = generation, phone = phone}) end

if known.removing == '1' then
  if a.wish == 'remove' then return answer(false) end
  return reply('REMOVING')
end
if a.generation and a.generation ~= generation then return reply('STALE', {generation = generation}) end

-- Ended for good, until a person decides otherwise.
local is_over = known.connection == 'FAILED' or known.authorisation == 'LOGGED_OUT' or known.authorisation == 'LINK_BLOCKED'

local function refused()
  if a.wish == 'restart' and not is_operator then
    if call('HGET', K.phone(phone), 'quarantined') == '1' then return reply('QUARANTINED') end
    if known.desired ~= 'running' or is_over then return reply('NOT_WANTED') end
  end
  if a.wish == 'remove' and not a.force then
    local waiting, is_last = left_behind(a.session, phone)
    if waiting > 0 then return reply('TASKS_WAITING', {waiting = waiting, last = is_last}) end
  end
end

local function is_fulfilled()
  if a.wish == 'start' then
    -- The worker of a banned number that has died is not begun again by itself: somebody asks for it here.
    local is_left = known.holds ~= '1' and known.connection == 'STARTING' and call('HGET', K.phone(phone), 'quarantined') == '1'
    return known.desired == 'running' and not is_over and not is_left
  end
  if a.wish == 'stop' then return known.desired == 'stopped' end
  if a.wish == 'pause' then return known.paused == '1' end
  return a.wish == 'resume' and known.paused ~= '1'
end

local no = refused()
if no then return no end
if is_fulfilled() then return answer(false) end
if change.desired then call('HSET', key, 'desired', change.desired) end
if change.newWorker then generation = new_worker(a.session, a.reason, is_operator) end
if a.wish == 'remove' then call('HSET', key, 'removing', 1, 'removingAt', a.now) end
if change.connection then
  -- Whoever was logged out or blocked links anew.
  local authorisation = change.newWorker and is_over and known.authorisation ~= 'LINKED' and 'UNLINKED' or nil
  put_state(a.session, change.connection, authorisation, 0, a.now)
end
-- What was handed over and nobody claimed goes back now, not when its time is over: another session of the number may go on with it.
if change.connection then
  for _, task in ipairs(call('LRANGE', K.outbox(a.session), 0, -1)) do call('ZADD', K.deadlines(), 'XX', 'LT', a.now, task_of(task) or task) end
end
-- Whoever is told to go is told nothing else.
if a.wish == 'stop' or a.wish == 'remove' then
  call('DEL', K.session_commands(a.session))
  -- It waits for nothing any more.
  call('HDEL', key, 'waitReason')
end
if a.wish == 'pause' then
  call('HSET', key, 'paused', 1, 'pausedAt', a.now)
  incident('SESSION_PAUSED', a.now, {sessionId = a.session, phone = phone, by = a.by})
elseif a.wish == 'resume' then
  call('HDEL', key, 'paused', 'pausedAt')
  unpark_paused(phone, a.now)
  jobs_look_again(a.now)
end
-- A look under way does not know of it.
rescan(phone, a.now)
-- A worker that waits for a task hears of it at once.
wake('outbox:' .. a.session)
wake('fleet')
audit('OPERATOR', a.now, {
  action = a.wish, sessionId = a.session, phone = phone, by = a.by, reason = a.reason, generation = generation, force = a.force,
})
return answer(true)
