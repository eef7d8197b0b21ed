-- Accepts a single send for a phone: a job of one that goes straight into the phone's queue, or waits for its time.
-- a: job, json, task, contact, phone, to, tz?, expiresAt, priority, sendAt?, limit, now, idem {key, answer}?
-- Returns OK {position} | EXISTS | QUEUE_FULL (over `limit` single sends wait for that phone).
if call('EXISTS', K.job(a.job)) == 1 then return reply('EXISTS') end
if call('SCARD', K.singles(a.phone)) >= a.limit then return reply('QUEUE_FULL') end
local position = ahead(a.phone, a.priority)
-- The answer that is kept is the one that is given, byte for byte; only here is the position known.
if a.idem then a.idem.answer = (string.gsub(a.idem.answer, '"position":null', '"position":' .. position, 1)) end
a.total = 1
create_job(a)
call('RPUSH', K.job_contacts(a.job, 0), a.contact)
call('HSET', K.job_run(a.job), 'state', 'ROUTED', 'cursor', 1)
call('HSET', K.job_routes(a.job), 0, a.phone)
call('SADD', K.singles(a.phone), a.task)
bind(a.to, a.phone, a.now)
if a.sendAt and a.sendAt > a.now then
  move(a.task, 's', a.now)
  local member = {task = a.task, phone = a.phone, to = a.to, tz = a.tz, expiresAt = a.expiresAt, priority = a.priority}
  call('ZADD', K.scheduled(), a.sendAt, cjson.encode(member))
  wake('due')
else
  move(a.task, 'r', a.now)
  enqueue(a.phone, a.task, a, a.now)
end
return reply('OK', {position = position})
