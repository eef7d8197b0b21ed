-- Proofs that tasks went out, each a fact, whoever brings it and however late: the state, the phone's pacing, statistics, the job's counters and
-- end. a: orders [{task, outcome (sent | delivered | read), whatsappId, statsDay?, now}]
-- Returns for each, in a plain list, OK {state, was (the state before)} | REPEAT {state} (known already) | UNKNOWN_TASK.
local PROOF = {sent = 'S', delivered = 'D', read = 'R'}

local function stat(o, session, name)
  count_fleet(name, o.now)
  count_day(session, o.statsDay, name, 1)
end

local function forget_retry(key, about)
  if not about.retryMember then return end
  call('ZREM', K.task_retry(), about.retryMember)
  call('HDEL', key, 'retryMember')
end

-- It has its answer: what stood there while it waited, or when it failed, is past.
local function now_sent(o, key, about)
  call('HSET', key, 'whatsappId', o.whatsappId, 'sentAt', about.sentAt or o.now,
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
local function note_sent(o, phone, session, about)
  free_phone(phone, o.task, about, o.now, true, true)
  call('SREM', K.singles(phone), o.task)
  -- A late proof about somebody who was erased brings nothing of them back.
  if about.to ~= ERASED then
    bind(about.to, phone, o.now)
    know_chat(phone, about.to, o.now)
    wrote_to_person(about.to, o.task, o.now)
  end
  if session then count_minute(session, 'sent60s', o.task, o.now) end
end

local function prove(o)
  local byte = split(o.task) and byte_of(o.task) or ''
  if byte == '' then return reply('UNKNOWN_TASK') end
  local key, is_first = K.message(o.task), not has(WENT_OUT, byte)
  local about = hash(key)
  take_out(o.task, about.sessionId, about.handing)
  if is_first then
    forget_retry(key, about)
    call('SET', K.task_status(o.task), 'SENT', 'EX', C.message_ttl)
  end
  if not move(o.task, PROOF[o.outcome], o.now, byte) then return reply('REPEAT', {state = byte}) end
  if is_first then now_sent(o, key, about) end
  if o.outcome ~= 'sent' then call('HSETNX', key, o.outcome .. 'At', o.now) end
  count_proof(o, about.sessionId, byte, about)
  if is_first and about.phone then note_sent(o, about.phone, about.sessionId, about) end
  call('EXPIRE', key, C.message_ttl)
  return reply('OK', {state = PROOF[o.outcome], was = byte})
end

return each(prove)
