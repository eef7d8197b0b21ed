-- Operators: what their decisions and SmartGuard's have in common.

-- The phone of a session, nil if there is no such session. Membership comes first: a made-up id could name a key of another kind.
local function phone_of(session)
  if call('SISMEMBER', K.sessions(), session) == 0 then return nil end
  return call('HGET', K.session(session), 'phone') or nil
end

-- Whether the dispatchers rest and whether sending is paused, as every change of it answers.
local function fleet_reply(changed)
  local fleet = hash(K.fleet())
  return reply('OK', {
    changed = changed, stopped = fleet.stopped == '1', paused = fleet.paused == '1',
    reason = fleet.pausedReason, since = tonumber(fleet.pausedAt or nil),
  })
end

-- The rpm override of a phone and who set it, nil if there is none: the slowest of its sessions', as `store/rows.py` has it too.
local function override_of(phone)
  local rpm, source
  local ids = call('SMEMBERS', K.phone_sessions(phone))
  table.sort(ids)
  for _, id in ipairs(ids) do
    local known = call('HMGET', K.session(id), 'rpm', 'rpmSource')
    local set = tonumber(known[1] or nil)
    if set and set <= (rpm or set) then rpm, source = set, known[2] or nil end
  end
  return rpm, source
end

local function override_session(id, rpm, source)
  if rpm then
    call('MSET', K.session_rpm(id), rpm, K.session_rpm_source(id), source)
    call('HSET', K.session(id), 'rpm', rpm, 'rpmSource', source)
  else
    call('DEL', K.session_rpm(id), K.session_rpm_source(id))
    call('HDEL', K.session(id), 'rpm', 'rpmSource')
  end
end

-- Queue and pace belong to the phone, so an override stands at each of its sessions. Without an rpm it is removed.
local function override_rpm(phone, rpm, source, now)
  for _, id in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do override_session(id, rpm, source) end
  call('HSET', K.phone(phone), 'rpmChangedAt', now)
  forget_facts(phone)
end

-- A session that comes has the override of its phone, and what the last one leaves behind waits for the next: a phone that was slowed down must
-- not become fast by changing its sessions.
local function inherit_override(phone, session)
  local rpm, source = override_of(phone)
  if not rpm then rpm, source = unpack(call('HMGET', K.phone(phone), 'keptRpm', 'keptRpmSource')) end
  call('HDEL', K.phone(phone), 'keptRpm', 'keptRpmSource')
  if rpm then override_session(session, rpm, source) end
  forget_facts(phone)
end

local function keep_override(phone)
  local rpm, source = override_of(phone)
  if rpm and call('SCARD', K.phone_sessions(phone)) == 1 then call('HSET', K.phone(phone), 'keptRpm', rpm, 'keptRpmSource', source) end
end

-- Ends one task that waits for a phone. Returns the byte it ended with, nil if it had ended before and only lay there.
local function cancel_waiting(phone, task, now)
  local job, index = split(task)
  local byte = byte_of(task)
  call('SREM', K.singles(phone), task)
  call('HDEL', K.job_routes(job), index)
  call('HDEL', K.message(task), 'waitReason', 'waitUntil', 'retryMember')
  if byte == '' or not has('rspth', byte) then
    retire(task)
    return nil
  end
  end_canceled(task, now)
  return byte_of(task)
end
