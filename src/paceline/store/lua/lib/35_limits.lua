-- Limits beyond pace and hours: what the platform lays on a number, the breaker, the whole fleet's rate, a person's patience.

-- Something changed that a look under way does not know of: that look is void, and the next one is now.
local function rescan(phone, now)
  put_pace(phone, pace_of(phone))
  forget_facts(phone)
  make_due(phone, now)
end

-- A number came (back) into play: jobs that found none, or no room, look again at once.
local function jobs_look_again(now)
  for _, job in ipairs(call('ZRANGE', K.jobs_retry(), 0, 99)) do call('ZADD', K.jobs_retry(), now, job) end
  for _, job in ipairs(call('ZRANGEBYSCORE', K.jobs_active(), '(' .. ms(now), '+inf', 'LIMIT', 0, 100)) do
    if call('HGET', K.job_run(job), 'waitReason') == 'WAITING_FOR_ROOM' then call('ZADD', K.jobs_active(), now, job) end
  end
  call('DEL', K.jobs_room())
  wake('jobs')
end

-- The last minute of a session stands with its number: what it sent among the number's sends, which of its attempts failed here.
local function failed_field(session) return 'failed:' .. session end

local function failed_since(phone, session, now)
  local times, count = call('HGET', K.pacer(phone), failed_field(session)) or '', 0
  for at in string.gmatch(times, '%d+') do
    if tonumber(at) > now - 60000 then count = count + 1 end
  end
  return count
end

-- What a session sent, was given and failed in the last minute. What it holds now counts as given.
local function last_minute(phone, session, now)
  local p = seen_pace(phone)
  local sent, failed = proven_since(sends_of(phone), p.sentBy, session, now), failed_since(phone, session, now)
  return sent, sent + failed + (p.holder == session and 1 or 0), failed
end

-- The same for other tools: as of the last message, told at most twice a minute, and gone a minute after that.
local function tell_minute(phone, session, sent, now)
  call('SET', K.metric(session, 'sent60s'), whole(sent), 'EX', '60')
  call('SET', K.metric(session, 'routed60s'), whole(sent + failed_since(phone, session, now)), 'EX', '60')
end

local function count_failed(phone, session, now)
  local key, field, times = K.pacer(phone), failed_field(session), {}
  for at in string.gmatch(call('HGET', key, field) or '', '%d+') do
    if tonumber(at) > now - 60000 then times[#times + 1] = at end
  end
  times[#times + 1] = ms(now)
  call('HSET', key, field, table.concat(times, ',', math.max(1, #times - 99)))
  call('SET', K.metric(session, 'failed60s'), whole(#times), 'EX', '60')
end

-- What the whole fleet did, minute by minute, an hour in each key, for totals and charts. A day in any timezone and a little more is kept.
local function count_fleet(name, now, by)
  local key, minute = K.fleet_hour(ms(math.floor(now / 3600000))), whole(math.floor(now / 60000) % 60)
  if call('HINCRBY', key, name .. ':' .. minute, whole(by)) == by then call('EXPIRE', key, '180000') end
end

-- What a session did on a day of its own timezone. Kept from the first count of the day on.
local function count_day(session, day, name, by)
  if not session or not day then return end
  local key = K.session_stats(session, day, name)
  if call('INCRBY', key, whole(by)) == by then call('EXPIRE', key, C.session_days_ttl) end
end

-- A failed attempt. One that concerns the recipient alone says nothing about the number.
local function note_failure(phone, session, now, recipient_only)
  if phone and session then count_failed(phone, session, now) end
  if not phone or recipient_only then return end
  local marks, times = marks_of(phone), {}
  for at in string.gmatch(marks.failures, '%d+') do
    if tonumber(at) > now - 3600000 then times[#times + 1] = at end
  end
  times[#times + 1] = ms(now)
  marks.failures = table.concat(times, ',', math.max(1, #times - 49))
  put_marks(phone, marks)
end

local function know_chat(phone, to, now)
  local key = K.chats(phone)
  local is_new = call('ZADD', key, ms(now), to) == 1
  if is_new then call('ZREMRANGEBYRANK', key, '0', whole(-C.chats_kept - 1)) end
  return is_new
end

-- Whether they have talked: who wrote to us stands among the chats, whom we wrote to we know by their messages, as long as these are kept.
-- Asked of numbers that may start no new chats, which are few; so that nothing has to be written down with every message.
local function knows(phone, to)
  if call('ZSCORE', K.chats(phone), to) then return true end
  for _, task in ipairs(call('ZREVRANGE', K.person(to), '0', whole(C.chats_looked - 1))) do
    local about = message_of(task)
    if about.phone == phone and about.sentAt then return true end
  end
  return false
end

-- Several numbers restricted in a short time are a sign that it is not about one of them: everything stops until somebody looks.
local function count_restricted(phone, now)
  local key = K.restricted_phones()
  call('ZADD', key, now, phone)
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. ms(now - C.breaker_window))
  if call('ZCARD', key) < C.breaker_phones or call('HGET', K.fleet(), 'paused') == '1' then return end
  call('HSET', K.fleet(), 'paused', 1, 'pausedReason', 'BREAKER', 'pausedAt', now)
  incident('FLEET_BREAKER', now, {phones = call('ZRANGE', key, 0, 99)})
end

-- When the last word that counted was said. No word is written down as later than its hearing, so one that lies ahead of us was heard before
-- the clock was set back: then whatever is said now is newer.
local function said_at(stored, now)
  local at = tonumber(stored or '0')
  return at <= now and at or 0
end

-- The platform's limits on new chats, each with its own end, and when we heard of it from which session. The one that ends last is what counts.
local LIMITS = {{'CAPPED', 'cappedUntil', 'cappedStated'}, {'TIME_LOCKED', 'timeLockedUntil', 'timeLockedStated'}}

local function restricted_until(phone) return tonumber(call('HGET', K.phone(phone), 'restrictedUntil') or '0') end

local function is_restricted(phone, now) return restricted_until(phone) > now end

-- What a limit on new chats parked waits no longer than to `at`; only one person's if `to` is given.
local function park_no_longer(phone, at, to)
  for _, entry in ipairs(call('ZRANGEBYSCORE', K.parked(phone), '(' .. ms(at), '+inf', 'LIMIT', 0, 5000)) do
    local item = item_of(entry)
    local reason = (not to or item.to == to) and call('HGET', K.message(item.task), 'waitReason')
    if reason == 'TIME_LOCKED' or reason == 'CAPPED' then
      park_until(phone, at, entry)
      call('HSET', K.message(item.task), 'waitUntil', at)
    end
  end
end

-- Writes down which limit counts after one of them changed, and what follows if new chats may start earlier than thought.
local function weigh_limits(phone, now)
  local key, was, kind, ends_at = K.phone(phone), restricted_until(phone), nil, 0
  for _, limit in ipairs(LIMITS) do
    local at = tonumber(call('HGET', key, limit[2]) or '0')
    if at > ends_at then kind, ends_at = limit[1], at end
  end
  if kind then
    call('HSET', key, 'restriction', kind, 'restrictedUntil', ends_at)
  else
    call('HDEL', key, 'restriction', 'restrictedUntil')
  end
  forget_facts(phone)
  if ends_at ~= was then rescan(phone, now) end
  if ends_at < was then park_no_longer(phone, math.max(now, ends_at)) end
  if ends_at <= now and was > now then jobs_look_again(now) end
end

local function limit_fields(kind)
  for _, limit in ipairs(LIMITS) do
    if limit[1] == kind then return limit[2], limit[3] end
  end
end

-- The platform lets this number start no new chats. What it stated counts; our own guess (after a 463) only while nothing is stated.
local function restrict(phone, session, kind, until_ms, now, is_guess)
  local key, was = K.phone(phone), is_restricted(phone, now)
  if was and is_guess then return end
  local replaces = not is_guess and call('HDEL', key, 'lockIsGuess') == 1
  if replaces then call('HDEL', key, 'timeLockedUntil') end
  if is_guess then call('HSET', key, 'lockIsGuess', 1) end
  local ends, stated = limit_fields(kind)
  local known = tonumber(call('HGET', key, ends) or '0')
  call('HSET', key, ends, until_ms, stated, is_guess and '' or ms(now) .. ' ' .. session)
  weigh_limits(phone, now)
  if known ~= until_ms then
    tell('session.restriction', now, 's', session, 'phone', phone, 'kind', kind, 'until', ms(until_ms))
  end
  -- Only a limit that begins is news; the breaker counts the number that was free until now.
  if not was or (known <= now and not replaces) then
    incident('PHONE_RESTRICTED', now, {phone = phone, sessionId = session, restriction = kind, ['until'] = until_ms})
  end
  if not was then count_restricted(phone, now) end
end

-- Whether a word of this session may not lift a limit, since another stated it after the word was said. The order of its own words is known.
local function came_later(stated, session, at, now)
  local heard, by = string.match(stated or '', '^(%d+) (.*)$')
  return heard and by ~= session and at < said_at(heard, now)
end

-- One limit is over, or all of them: a session said so at that time. Returns whether one was stated after that, and stays.
local function lift(phone, kind, session, at, now)
  local key, stays = K.phone(phone), false
  call('HDEL', key, 'lockIsGuess')
  for _, limit in ipairs(LIMITS) do
    if not kind or limit[1] == kind then
      local ends, stated = unpack(call('HMGET', key, limit[2], limit[3]))
      if ends and came_later(stated, session, at, now) then stays = true else call('HDEL', key, limit[2], limit[3]) end
    end
  end
  weigh_limits(phone, now)
  return stays
end

local function job_is_paused(job) return call('HGET', K.job_run(job), 'state') == 'PAUSED' end

-- When this number's turn comes under GLOBAL_RPM, for a message whose slot is `slot`; 0 if now. A hand-over counts until it is settled, then
-- for a minute from when we heard of it, so that no minute on the wire can hold more. Whose last turn was longest ago goes first:
-- otherwise those who look first would take every place, always.
local UNSETTLED = 9e15
local function fleet_free_at(phone, slot)
  if C.global_rpm == 0 then return 0 end
  local from = ms(slot - 60000)
  local taken = call('ZCOUNT', K.fleet_sends(), from, '+inf')
  local before = call('ZRANK', K.fleet_waiting(), phone) or call('ZCARD', K.fleet_waiting())
  local lacking = taken + before - C.global_rpm + 1
  if lacking <= 0 then return 0 end
  local leaves = call('ZRANGEBYSCORE', K.fleet_sends(), from, '+inf', 'WITHSCORES', 'LIMIT', lacking - 1, 1)
  local at = tonumber(leaves[2] or nil)
  if not at then return slot + 60000 end
  return at == UNSETTLED and slot + 1000 or at + 60001
end

-- A place in the line, behind all whose last turn was longer ago.
local function wait_for_fleet(phone)
  call('ZADD', K.fleet_waiting(), 'NX', call('HGET', K.pacer(phone), 'fleetTurn') or 0, phone)
end

local function reserve_fleet(phone, task, now)
  if C.global_rpm == 0 then return end
  call('ZREM', K.fleet_waiting(), phone)
  -- Those who went in the same minute are shuffled by their task's id, or the first to look would be first in line each time.
  call('HSET', K.pacer(phone), 'fleetTurn', ms(now + tonumber(string.sub(redis.sha1hex(task), 1, 4), 16) % 60000))
  local member = task .. '@' .. ms(now)
  call('ZREMRANGEBYSCORE', K.fleet_sends(), '-inf', now - 180000)
  call('ZADD', K.fleet_sends(), ms(UNSETTLED), member)
  call('HSET', K.message(task), 'fleetMember', member)
end

local function settle_fleet(task, member, now, on_wire)
  if not member then return end
  if on_wire then call('ZADD', K.fleet_sends(), 'XX', now, member) else call('ZREM', K.fleet_sends(), member) end
  call('HDEL', K.message(task), 'fleetMember')
end

-- Until when this person has had as many messages as they may get, over all numbers; 0 if another may go. A message does not count
-- against itself. What is only handed over (h:) may turn out not to have gone: then it is worth another look soon.
local function frequency_free_at(to, task, now)
  if C.frequency_cap == 0 then return 0 end
  local found, count = call('ZREVRANGEBYSCORE', K.recipient_sends(to), '+inf', '(' .. ms(now - C.frequency_window),
    'WITHSCORES', 'LIMIT', 0, C.frequency_cap + 2), 0
  local is_firm = true
  for i = 1, #found, 2 do
    if found[i] ~= task and found[i] ~= 'h:' .. task then
      count = count + 1
      if string.sub(found[i], 1, 2) == 'h:' then is_firm = false end
    end
    if count == C.frequency_cap then return is_firm and tonumber(found[i + 1]) + C.frequency_window or now + 60000 end
  end
  return 0
end

local function count_for_person(to, member, at)
  if C.frequency_cap == 0 then return end
  local key = K.recipient_sends(to)
  call('ZREMRANGEBYSCORE', key, '-inf', at - C.frequency_window)
  call('ZADD', key, at, member)
  call('PEXPIRE', key, C.frequency_window * 2)
end

-- It went out, or may have.
local function wrote_to_person(to, task, at)
  if C.frequency_cap == 0 then return end
  call('ZREM', K.recipient_sends(to), 'h:' .. task)
  count_for_person(to, task, at)
end

-- It certainly did not go out this time; an earlier try that may have still counts.
local function uncount_for_person(to, task, earlier_may)
  if C.frequency_cap == 0 then return end
  call('ZREM', K.recipient_sends(to), 'h:' .. task)
  if not earlier_may then call('ZREM', K.recipient_sends(to), task) end
end
