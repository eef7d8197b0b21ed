-- Proofs that tasks went out, each a fact, whoever brings it and however late: the state, the phone's pacing, statistics, the job's counters and
-- end. a: orders [{task, outcome (sent | delivered | read), statsDay?, now}]
-- Returns for each, in a plain list, OK {state, was (the state before)} | REPEAT {state} (known already) | UNKNOWN_TASK.
local PROOF = {sent = 'S', delivered = 'D', read = 'R'}
-- A number that was told its person's number so long ago tells it again (bind).
local BOUND_MS = 3600000

-- Messages by their task, read before anything is written; of `handed` what a proof needs.
local abouts = {}

local function read_message(task)
  local about = hash(K.message(task))
  local phone, session, send_after = string.match(about.handed or '', '^(%S+) (%S+) (%d+)')
  about.phone, about.sessionId, about.sendAfter = phone or about.phone, session, send_after
  return about
end

-- What is written for all orders together: what the whole fleet did, what other tools read of each task, and which messages may be forgotten
-- one day.
local tallies, statuses, ended = {}, {}, {}

local function tally(o, name)
  local minute = math.floor(o.now / 60000)
  local counts = tallies[minute] or {now = o.now, names = {}}
  tallies[minute], counts.names[name] = counts, (counts.names[name] or 0) + 1
end

local function stat(o, session, name)
  tally(o, name)
  count_day(session, o.statsDay, name, 1)
end

local function forget_retry(key, about)
  if not about.retryMember then return end
  call('ZREM', K.task_retry(), about.retryMember)
  call('HDEL', key, 'retryMember')
end

-- It has its answer: what stood there while it waited, or when it failed, is past. A history of nothing but this follows from its time.
local function now_sent(o, key, about, byte)
  if o.outcome == 'sent' and not about.history then
    call('HSET', key, 'sentAt', about.sentAt or ms(o.now))
  else
    local line = '{"at":' .. ms(o.now) .. ',"what":"sent","by":"' .. o.outcome .. '"}'
    call('HSET', key, 'sentAt', about.sentAt or ms(o.now), 'history', history_with(about.history, line))
  end
  if about.errorCode or about.waitReason then call('HDEL', key, 'errorCode', 'errorMessage', 'waitReason', 'waitUntil') end
  statuses[#statuses + 1], statuses[#statuses + 2], ended[#ended + 1] = K.task_status(o.task), 'SENT', o.task
  -- One that had ended otherwise has a TTL from then.
  if EVENT[byte] then call('PERSIST', key) end
end

local function count_proof(o, session, byte, about)
  if not STEP[byte] then stat(o, session, 'sent') end
  if o.outcome == 'sent' then return end
  stat(o, session, o.outcome)
  if byte == 'D' then return end
  if o.outcome == 'read' then stat(o, session, 'delivered') end
  count_day(session, o.statsDay, 'deliveryMs', math.max(0, o.now - tonumber(about.sentAt or about.claimedAt or o.now)))
end

-- Who was given this number when the task came into its queue is bound to it already. Mostly that time ends the entry; times of thirteen digits
-- are in order as texts, too.
local function is_bound(about, now)
  local at = string.sub(about.entry or '', -14, -2)
  if not string.find(at, '^%d+$') then at = string.match(about.entry or '', '^[^,]+,[^,]+,%d+,%d+,%d+,(%d+)') end
  return at and at > ms(now - BOUND_MS)
end

-- What follows from its having gone out, once.
local function note_sent(o, phone, about, byte)
  free_phone(phone, o.task, about, o.now, true, true)
  -- It left that set when it was handed over, unless somebody proves what we never gave out.
  if not has('hcu', byte) then call('SREM', K.singles(phone), o.task) end
  local is_known = is_bound(about, o.now)
  if is_known and C.frequency_cap == 0 then return end
  local to = told_apart(about).to
  -- A late proof about somebody who was erased brings nothing of them back.
  if not to or to == ERASED then return end
  if not is_known then bind(to, phone, o.now) end
  wrote_to_person(to, o.task, o.now)
end

local function prove(o)
  local byte = split(o.task) and byte_of(o.task) or ''
  if byte == '' then return '{"code":"UNKNOWN_TASK"}' end
  local key, is_first = K.message(o.task), not STEP[byte]
  -- Read for all of them at first; of a task that is proven twice in one call, again.
  local about = abouts[o.task] or read_message(o.task)
  abouts[o.task] = nil
  take_from_outbox(o.task, about, byte)
  if is_first then forget_retry(key, about) end
  if not move(o.task, PROOF[o.outcome], o.now, byte) then return '{"code":"REPEAT","state":"' .. byte .. '"}' end
  if is_first then now_sent(o, key, about, byte) end
  if o.outcome ~= 'sent' then call('HSETNX', key, o.outcome .. 'At', ms(o.now)) end
  count_proof(o, about.sessionId, byte, about)
  if is_first and about.phone then note_sent(o, about.phone, about, byte) end
  -- Forgotten since: what is written of it now has its own end.
  if not is_first and not about.sentAt then call('EXPIRE', key, C.message_ttl) end
  return '{"code":"OK","state":"' .. PROOF[o.outcome] .. '","was":"' .. byte .. '"}'
end

local tasks, good, phones = {}, {}, {}
for i, order in ipairs(a.orders) do tasks[i] = order.task end
gather(tasks)
for _, task in ipairs(tasks) do
  local is_good, about = pcall(read_message, task)
  if is_good then abouts[task], good[#good + 1], phones[#phones + 1] = about, task, about.phone or nil end
end
look_up(PACE, phones)
look_up(SENDS, phones)
-- The first write only frees memory, so a proof is taken when Redis is full. What cannot be read keeps its deadline.
if #good > 0 then call('ZREM', K.deadlines(), unpack(good)) end

return each(prove, function(answers)
  write_held()
  local failed = write_gathered()
  for i, task in ipairs(tasks) do
    local problem = failed[split(task)]
    if problem then answers[i] = '!' .. said(problem) end
  end
  if #statuses > 0 then call('MSET', unpack(statuses)) end
  if #ended > 0 then forget_after(ended, a.orders[1].now) end
  for _, counts in pairs(tallies) do
    for name, count in pairs(counts.names) do count_fleet(name, counts.now, count) end
  end
end)
