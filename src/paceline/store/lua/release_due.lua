-- Brings back what waited for its time: scheduled single sends to the tail of their phone's queue, retries to the head.
-- a: now, limit
-- Returns OK {released, nextAt?}. Moving is one step, so repeating it finds nothing. While the dispatchers are stopped nothing moves.
if call('HGET', K.fleet(), 'stopped') == '1' then return reply('OK', {released = 0}) end
local released = 0
for _, member in ipairs(call('ZRANGEBYSCORE', K.scheduled(), '-inf', a.now, 'LIMIT', 0, a.limit)) do
  call('ZREM', K.scheduled(), member)
  local item = cjson.decode(member)
  if move(item.task, 'r', a.now) then
    enqueue(item.phone, item.task, item, a.now)
  else
    call('SREM', K.singles(item.phone), item.task)
    retire(item.task)
  end
  released = released + 1
end
for _, member in ipairs(call('ZRANGEBYSCORE', K.task_retry(), '-inf', a.now, 'LIMIT', 0, a.limit)) do
  call('ZREM', K.task_retry(), member)
  local item = cjson.decode(member)
  call('HDEL', K.message(item.task), 'retryMember', 'waitReason', 'waitUntil')
  if byte_of(item.task) == 't' then
    put_back(item.phone, {call('HGET', K.message(item.task), 'entry')})
    make_due(item.phone, a.now)
  else
    retire(item.task)
  end
  released = released + 1
end
return reply('OK', {released = released, nextAt = first_score({K.scheduled(), K.task_retry()})})
