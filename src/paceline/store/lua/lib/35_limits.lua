-- Limits beyond pace and hours: what the platform lays on a number, the breaker, the whole fleet's rate, a person's patience.

-- Something changed that a look under way does not know of: that look is void, and the next one is now.
local function rescan(phone, now)
  call('HINCRBY', K.pacer(phone), 'version', 1)
  make_due(phone, now)
end

-- A number came (back) into play: jobs that found none, or no room, look again at once.
local function jobs_look_again(now)
  for _, job in ipairs(call('ZRANGE', K.jobs_retry(), 0, 99)) do call('ZADD', K.jobs_retry(), now, job) end
  for _, job in ipairs(call('ZRANGEBYSCORE', K.jobs_active(), '(' .. string.format('%.0f', now), '+inf', 'LIMIT', 0, 100)) do
    if call('HGET', K.job_run(job), 'waitReason') == 'WAITING_FOR_ROOM' then call('ZADD', K.jobs_active(), now, job) end
  end
  call('DEL', K.jobs_room())
  wake('jobs')
end

-- One event of the last minute of a session, for SmartGuard's sake and for those who watch.
local function count_minute(session, name, member, now)
  local key = K.metric(session, name)
  call('ZREMRANGEBYSCORE', key, '-inf', now - 60000)
  call('ZADD', key, now, member)
  call('EXPIRE', key, 120)
end

-- A failed attempt. One that concerns the recipient alone says nothing about the number.
local function note_failure(phone, session, member, now, recipient_only)
  if session then count_minute(session, 'failed60s', member, now) end
  if not phone or recipient_only then return end
  local times = {}
  for at in string.gmatch(call('HGET', K.pacer(phone), 'failures') or '', '%d+') do
    if tonumber(at) > now - 3600000 then times[#times + 1] = at end
  end
  times[#times + 1] = string.format('%.0f', now)
  call('HSET', K.pacer(phone), 'failures', table.concat(times, ',', math.max(1, #times - 49)))
end

local function know_chat(phone, to, now)
  local key = K.chats(phone)
  call('ZADD', key, now, to)
  if call('ZCARD', key) > C.chats_kept then call('ZREMRANGEBYRANK', key, 0, 0) end
end

local function knows(phone, to) return call('ZSCORE', K.chats(phone), to) and true or false end

-- Several numbers restricted in a short time are a sign that it is not about one of them: everything stops until somebody looks.
local function count_restricted(phone, now)
  local key = K.restricted_phones()
  call('ZADD', key, now, phone)
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', now - C.breaker_window))
  if call('ZCARD', key) < C.breaker_phones or call('HGET', K.fleet(), 'paused') == '1' then return end
  call('HSET', K.fleet(), 'paused', 1, 'pausedReason', 'BREAKER', 'pausedAt', now)
  incident('FLEET_BREAKER', now, {phones = call('ZRANGE', key, 0, 99)})
end

local function is_restricted(phone, now)
  local known = call('HMGET', K.phone(phone), 'restriction', 'restrictedUntil')
  return known[1] and tonumber(known[2]) > now
end

-- The platform lets this number start no new chats. What it stated counts; our own guess (after a 463) only while nothing is stated.
local function restrict(phone, session, kind, until_ms, now, is_guess)
  local key, was = K.phone(phone), is_restricted(phone, now)
  if was and is_guess then return end
  local known = call('HGET', key, 'restriction')
  call('HSET', key, 'restriction', kind, 'restrictedUntil', until_ms)
  rescan(phone, now)
  if was and known == kind then return end
  incident('PHONE_RESTRICTED', now, {phone = phone, sessionId = session, restriction = kind, ['until'] = until_ms})
  if not was then count_restricted(phone, now) end
end

-- What a restriction parked comes back at once.
local function lift(phone, now)
  call('HDEL', K.phone(phone), 'restriction', 'restrictedUntil')
  for _, entry in ipairs(call('ZRANGE', K.parked(phone), 0, -1)) do
    local reason = call('HGET', K.message(cjson.decode(entry).task), 'waitReason')
    if reason == 'TIME_LOCKED' or reason == 'CAPPED' then call('ZADD', K.parked(phone), now, entry) end
  end
  rescan(phone, now)
  jobs_look_again(now)
end

local function job_is_paused(job) return call('HGET', K.job_run(job), 'state') == 'PAUSED' end

-- When the whole fleet may send its next message, for one whose slot is `slot`; 0 if now. A hand-over counts until it is settled, then for a
-- minute from when we heard of it, so that no minute on the wire can hold more.
local UNSETTLED = 9e15
local function fleet_free_at(slot)
  if C.global_rpm == 0 then return 0 end
  local newest = call('ZREVRANGE', K.fleet_sends(), C.global_rpm - 1, C.global_rpm - 1, 'WITHSCORES')
  local at = tonumber(newest[2] or nil)
  if not at or at < slot - 60000 then return 0 end
  return at == UNSETTLED and slot + 1000 or at + 60001
end

local function reserve_fleet(task, now)
  if C.global_rpm == 0 then return end
  local member = task .. '@' .. string.format('%.0f', now)
  call('ZREMRANGEBYSCORE', K.fleet_sends(), '-inf', now - 180000)
  call('ZADD', K.fleet_sends(), string.format('%.0f', UNSETTLED), member)
  call('HSET', K.message(task), 'fleetMember', member)
end

local function settle_fleet(task, now, on_wire)
  local member = call('HGET', K.message(task), 'fleetMember')
  if not member then return end
  if on_wire then call('ZADD', K.fleet_sends(), 'XX', now, member) else call('ZREM', K.fleet_sends(), member) end
  call('HDEL', K.message(task), 'fleetMember')
end

-- Until when this person has had as many messages as they may get, over all numbers; 0 if another may go. A message does not count
-- against itself.
local function frequency_free_at(to, task, now)
  if C.frequency_cap == 0 then return 0 end
  local found, count = call('ZREVRANGEBYSCORE', K.recipient_sends(to), '+inf', '(' .. string.format('%.0f', now - C.frequency_window),
    'WITHSCORES', 'LIMIT', 0, C.frequency_cap + 1), 0
  for i = 1, #found, 2 do
    if found[i] ~= task then count = count + 1 end
    if count == C.frequency_cap then return tonumber(found[i + 1]) + C.frequency_window end
  end
  return 0
end

local function count_for_person(to, task, at)
  if C.frequency_cap == 0 then return end
  local key = K.recipient_sends(to)
  call('ZREMRANGEBYSCORE', key, '-inf', at - C.frequency_window)
  call('ZADD', key, at, task)
  call('PEXPIRE', key, C.frequency_window * 2)
end

local function uncount_for_person(to, task) call('ZREM', K.recipient_sends(to), task) end
