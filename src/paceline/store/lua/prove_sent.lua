-- Proofs that tasks went out, each a fact, whoever brings it and however late: the state, the phone's pacing, statistics, the job's counters and
-- end. a: orders [{task, outcome (sent | delivered | read), whatsappId, statsDay?, now}]
-- Returns for each, in a plain list, OK {state, was (the state before)} | REPEAT {state} (known already) | UNKNOWN_TASK.
local PROOF = {sent = 'S', delivered = 'D', read = 'R'}

-- Messages by their task, read before anything is written.
local abouts = {}

-- What the whole fleet did, counted for all orders together.
local tallies = {}

local function stat(o, session, name)
  local minute = name .. whole(math.floor(o.now / 60000))
  local tally = tallies[minute] or {name = name, now = o.now, count = 0}
  tallies[minute], tally.count = tally, tally.count + 1
  count_day(session, o.statsDay, name, 1)
end

local function forget_retry(key, about)
  if not about.retryMember then return end
  call('ZREM', K.task_retry(), about.retryMember)
  call('HDEL', key, 'retryMember')
end

-- It has its answer: what stood there while it waited, or when it failed, is past.
local function now_sent(o, key, about)
  call('HSET', key, 'whatsappId', o.whatsappId, 'sentAt', about.sentAt or ms(o.now),
    'history', history_with(about.history, {at = o.now, what = 'sent', by = o.outcome}))
  if about.errorCode or about.waitReason then call('HDEL', key, 'errorCode', 'errorMessage', 'waitReason', 'waitUntil') end
end

local function count_proof(o, session, byte, about)
  stat(o, session, o.outcome)
  if o.outcome == 'sent' then return end
  if not has(WENT_OUT, byte) then stat(o, session, 'sent') end
  if byte == 'D' then return end
  if o.outcome == 'read' then stat(o, session, 'delivered') end
  count_day(session, o.statsDay, 'deliveryMs', math.max(0, o.now - tonumber(about.sentAt or about.claimedAt or o.now)))
end

-- What follows from its having gone out, once.
local function note_sent(o, phone, session, about, byte)
  local tidied = free_phone(phone, o.task, about, o.now, true, true)
  -- It left that set when it was handed over, unless somebody proves what we never gave out.
  if not has('hcu', byte) then call('SREM', K.singles(phone), o.task) end
  -- A late proof about somebody who was erased brings nothing of them back.
  if about.to ~= ERASED then
    bind(about.to, phone, o.now)
    know_chat(phone, about.to, o.now)
    wrote_to_person(about.to, o.task, o.now)
  end
  if session then count_minute(session, 'sent60s', o.task, o.now, tidied) end
end

local function prove(o)
  local byte = split(o.task) and byte_of(o.task) or ''
  if byte == '' then return reply('UNKNOWN_TASK') end
  local key, is_first = K.message(o.task), not has(WENT_OUT, byte)
  -- Read for all of them at first; of a task that is proven twice in one call, again.
  local about = abouts[o.task] or hash(key)
  abouts[o.task] = nil
  take_from_outbox(o.task, about.sessionId, about.handing, byte)
  if is_first then
    forget_retry(key, about)
    call('SET', K.task_status(o.task), 'SENT', 'EX', C.message_ttl)
  end
  if not move(o.task, PROOF[o.outcome], o.now, byte) then return reply('REPEAT', {state = byte}) end
  if is_first then now_sent(o, key, about) end
  if o.outcome ~= 'sent' then call('HSETNX', key, o.outcome .. 'At', ms(o.now)) end
  count_proof(o, about.sessionId, byte, about)
  if is_first and about.phone then note_sent(o, about.phone, about.sessionId, about, byte) end
  call('EXPIRE', key, C.message_ttl)
  return reply('OK', {state = PROOF[o.outcome], was = byte})
end

local tasks, good = {}, {}
for i, order in ipairs(a.orders) do tasks[i] = order.task end
gather(tasks)
for _, task in ipairs(tasks) do
  local is_good, about = pcall(hash, K.message(task))
  if is_good then abouts[task], good[#good + 1] = about, task end
end
-- The first write only frees memory, so a proof is taken when Redis is full. What cannot be read keeps its deadline.
if #good > 0 then call('ZREM', K.deadlines(), unpack(good)) end
return each(prove, function(answers)
  local failed = write_gathered()
  for i, task in ipairs(tasks) do
    local problem = failed[split(task)]
    if problem then answers[i] = '!' .. said(problem) end
  end
  for _, tally in pairs(tallies) do count_fleet(tally.name, tally.now, tally.count) end
end)
