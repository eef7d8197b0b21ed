-- Forgets whom one message was for: a contact that is nobody stands in its place, so every index and every count stays right.
-- a: task, numbers [every notation of theirs], job? {seen, json} (the job as it is and as it shall be, if it was for this person alone), now
-- Returns OK {canceled} | WAITING {phone?} (it lies in a queue: cancel it first) | OPEN (a worker holds it: what it has cannot be taken back) |
-- OTHER (it is not for them) | GONE.
local job, index = split(a.task)
local byte = byte_of(a.task)
if byte == '' then return reply('GONE') end
local key, at, mine = K.job_contacts(job, math.floor(index / C.chunk)), index % C.chunk, false
local contact = call('LINDEX', key, at)
for _, digits in ipairs(a.numbers) do
  if contact == digits or contact and string.find(contact, '"to":"' .. digits .. '"', 1, true) then mine = true end
end
if not mine then return reply('OTHER') end
if has('cu', byte) then return reply('OPEN') end
local message, accepted = K.message(a.task), cjson.decode(call('GET', K.job(job)) or '{}')
local phone = call('HGET', K.job_routes(job), index) or message_of(a.task).phone or accepted.phone
if has('rspth', byte) then return reply('WAITING', {phone = phone}) end
if byte == 'q' then end_canceled(a.task, a.now) end

-- What ended while it lay in a queue (its job was canceled, it was proven sent) stays there until it comes to the head.
local named = '"' .. a.task .. '"'
local function out_of_queues()
  for priority = 1, 3 do
    for _, entry in ipairs(call('LRANGE', queue_key(phone, priority), 0, -1)) do
      if string.find(entry, named, 1, true) then call('LREM', queue_key(phone, priority), 1, entry) end
    end
  end
  for _, entry in ipairs(call('ZRANGE', K.parked(phone), 0, -1)) do
    if string.find(entry, named, 1, true) then call('ZREM', K.parked(phone), entry) end
  end
  call('SREM', K.singles(phone), a.task)
  call('HDEL', K.job_routes(job), index)
end
-- Whatever has the same time is read: until that comes, nobody else would take it out.
local function out_of_schedule()
  for _, member in ipairs(call('ZRANGEBYSCORE', K.scheduled(), accepted.sendAt, accepted.sendAt)) do
    if string.find(member, named, 1, true) then call('ZREM', K.scheduled(), member) end
  end
end
local session = message_of(a.task).sessionId
if session then unhand(a.task, session) end
if phone then out_of_queues() end
if accepted.single and accepted.sendAt then out_of_schedule() end

call('LSET', key, at, ERASED)
for field, value in pairs(hash(message)) do
  local changed = without(value, a.numbers)
  if changed then call('HSET', message, field, changed) end
end
if a.job and call('GET', K.job(job)) == a.job.seen then call('SET', K.job(job), a.job.json, 'KEEPTTL') end
return reply('OK', {canceled = byte == 'q'})
