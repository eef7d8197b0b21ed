-- Ends what waits for a phone: scheduled single sends, what no worker has claimed yet, its queues, what is parked. One batch of it.
-- a: phone, session, by, limit (tasks), upTo? (from the answer before), canceled, failed (so far), now
-- Returns OK {canceled, failed (may have gone out: it would be a lie to call it canceled), upTo, more, open (in a worker's hands)}.
-- upTo is the last place given out when it began: what comes into the queue meanwhile was not meant. The last batch writes the incident.
local left = a.limit
local ended = {X = a.canceled, F = a.failed}

local function cancel(task)
  left = left - 1
  local byte = cancel_waiting(a.phone, task, a.now)
  if byte then ended[byte] = ended[byte] + 1 end
end

-- Members of queue:scheduled are known by their time; the few of one moment are read once. One that is not among them ends all the same,
-- and is dropped when its time comes.
local at_moment = {}
local function unschedule(task)
  local at = string.match(call('GET', K.job((split(task)))) or '', '"sendAt":(%d+)')
  if not at then return end
  if not at_moment[at] then
    at_moment[at] = {}
    for _, member in ipairs(call('ZRANGEBYSCORE', K.scheduled(), at, at, 'LIMIT', 0, 1000)) do
      at_moment[at][cjson.decode(member).task] = member
    end
  end
  if at_moment[at][task] then call('ZREM', K.scheduled(), at_moment[at][task]) end
end

for _, task in ipairs(call('SMEMBERS', K.singles(a.phone))) do
  if left == 0 then break end
  if byte_of(task) == 's' then
    unschedule(task)
    cancel(task)
  end
end

-- It stays in the outbox: the next claim or the sweeper finds it ended, frees the phone and gives its unit back.
local busy = unsettled_of(a.phone)
if busy and left > 0 and byte_of(busy) == 'h' then cancel(busy) end

local up_to = a.upTo or tonumber(filled(marks_of(a.phone).seq) or '0')
for priority = 3, 1, -1 do
  local key = queue_key(a.phone, priority)
  local first = call('LINDEX', key, -1)
  while first and left > 0 do
    local item = item_of(first)
    if item.seq > up_to then break end
    call('RPOP', key)
    cancel(item.task)
    first = call('LINDEX', key, -1)
  end
end
if left > 0 then
  for _, entry in ipairs(call('ZRANGE', K.parked(a.phone), 0, left - 1)) do
    call('ZREM', K.parked(a.phone), entry)
    cancel(item_of(entry).task)
  end
end

local open = 0
for _, id in ipairs(call('SMEMBERS', K.phone_sessions(a.phone))) do open = open + call('LLEN', K.processing(id)) end
if left > 0 then
  if not busy and ended.X + ended.F > 0 then score_again(a.phone, a.now) end
  if ended.X + ended.F > 0 then
    incident('QUEUE_CANCELED', a.now, {phone = a.phone, sessionId = a.session, by = a.by, canceled = ended.X, failed = ended.F})
    audit('OPERATOR', a.now, {
      action = 'cancel_queue', phone = a.phone, sessionId = a.session, by = a.by, canceled = ended.X, failed = ended.F,
    })
  end
end
return reply('OK', {canceled = ended.X, failed = ended.F, upTo = up_to, more = left == 0, open = open})
