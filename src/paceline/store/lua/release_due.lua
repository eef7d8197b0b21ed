-- Brings back what waited for its time: scheduled single sends to the tail of their phone's queue, retries to the head. And forgets messages
-- that went out as long ago as they are kept, with what other tools read of them.
-- a: now, limit, forget (0 if it is not the time for it: else of so many settlings the messages)
-- Returns OK {released, nextAt?, forgets (there is more of that)}. Moving is one step, so repeating it finds nothing. While the dispatchers are stopped
-- nothing moves.
local function forget()
  local settlings = call('ZRANGEBYSCORE', K.messages_ended(), '-inf', ms(a.now), 'LIMIT', '0', whole(a.forget))
  for _, tasks in ipairs(settlings) do
    local doomed = {}
    for task in string.gmatch(tasks, '%S+') do doomed[#doomed + 1], doomed[#doomed + 2] = K.message(task), K.task_status(task) end
    call('UNLINK', unpack(doomed))
  end
  if #settlings > 0 then call('ZREM', K.messages_ended(), unpack(settlings)) end
  return #settlings == a.forget
end

local forgets = a.forget > 0 and forget()
if call('HGET', K.fleet(), 'stopped') == '1' then return reply('OK', {released = 0, forgets = forgets}) end
local released = 0

-- Each on its own: one whose phone cannot be read keeps its place, a minute later, and the others go on.
local function bring_back(key, member, back)
  local item = cjson.decode(member)
  local is_good, problem = pcall(must_be_readable, item.phone)
  if not is_good then
    call('ZADD', key, ms(a.now + 60000), member)
    return put_aside(item.phone, problem, a.now)
  end
  call('ZREM', key, member)
  back(item)
  released = released + 1
end

local function scheduled(item)
  if move(item.task, 'r', a.now) then
    enqueue(item.phone, item.task, item, a.now)
    -- It was bound when it was accepted, which may be long ago.
    bind(item.to, item.phone, a.now)
  else
    call('SREM', K.singles(item.phone), item.task)
    retire(item.task)
  end
end

local function retried(item)
  call('HDEL', K.message(item.task), 'retryMember', 'waitReason', 'waitUntil')
  if byte_of(item.task) == 't' then
    put_back(item.phone, {call('HGET', K.message(item.task), 'entry')})
    make_due(item.phone, a.now)
  else
    retire(item.task)
  end
end

for _, waiting in ipairs({{K.scheduled(), scheduled}, {K.task_retry(), retried}}) do
  local key, back = unpack(waiting)
  for _, member in ipairs(call('ZRANGEBYSCORE', key, '-inf', a.now, 'LIMIT', 0, a.limit)) do bring_back(key, member, back) end
end
return reply('OK', {released = released, forgets = forgets, nextAt = first_score({K.scheduled(), K.task_retry()})})
