-- Sessions and their workers: what wishes and workers' words change about them (domain/sessions.py).

-- Whether a worker's word is heard for the first time. A worker tells it until it is answered, and a copy may come long after newer words; if
-- that worker's clock is ahead, no time tells it from them. Its name counts within its epoch; what is true in any comes without one, and the
-- next worker may tell it again. The last 32 are remembered: a number whose connection comes and goes says a few in a minute, and a copy is
-- under way for seconds.
local function is_news(session, epoch, word)
  if not word then return true end
  local key, name = K.session(session), string.sub(redis.sha1hex((epoch or '-') .. ':' .. word), 1, 15) .. ' '
  local told = call('HGET', key, 'wordsTold') or ''
  if has(told, name) then return false end
  call('HSET', key, 'wordsTold', string.sub(name .. told, 1, 32 * #name))
  return true
end

-- Writes how a session stands and tells of it if that is news. `at` is when it came to be so by its worker's clock: older words of that
-- worker change nothing. 0 where it is our own doing: two clocks cannot be compared, and the next worker's first word counts.
local function put_state(session, connection, authorisation, at, now)
  local key = K.session(session)
  local was = call('HMGET', key, 'connection', 'authorisation', 'phone')
  connection, authorisation = connection or was[1], authorisation or was[2] or ''
  call('HSET', key, 'connection', connection, 'authorisation', authorisation, 'connectionAt', at, 'stateAt', ms(now))
  if was[3] then forget_facts(was[3]) end
  -- For the watchdog, by our clock: since when it is there, or away.
  if connection == 'CONNECTED' then
    call('HDEL', key, 'downSince')
    if was[1] ~= connection then call('HSET', key, 'connectedSince', now) end
  elseif was[1] == 'CONNECTED' or ((was[1] == 'STOPPED' or was[1] == 'FAILED') and call('HEXISTS', key, 'downSince') == 1) then
    -- While nobody wanted it, nobody missed it.
    call('HSET', key, 'downSince', now)
  end
  call('SET', K.session_status(session), connection)
  if connection ~= 'SCAN_QR' then call('DEL', K.session_qr(session), K.session_pairing(session)) end
  if was[1] ~= connection or was[2] ~= authorisation then
    tell('session.status', now, 's', session, 'phone', was[3], 'connection', connection, 'authorisation', authorisation)
  end
end

-- Another worker process is wanted. The present one gets nothing more to do and its words on the connection count no longer.
-- Tries in a row are forgotten only when a person asks: a crash loop must not become endless because somebody heals it.
local function new_worker(session, reason, is_operator)
  local key = K.session(session)
  local known = call('HMGET', key, 'generation', 'instanceId')
  local generation = math.max(1, tonumber(known[1] or '1')) + 1
  call('HSET', key, 'generation', generation, 'restartReason', reason, 'retired', known[2] or '')
  call('HDEL', key, 'failedReason')
  if is_operator then
    call('HDEL', key, 'starts', 'notBefore')
    -- If it stays away all the same, that is news again; and so is its return.
    if call('HDEL', key, 'downTold') == 1 then call('HSET', key, 'troubleTold', 1) end
  end
  return generation
end

-- Whether this worker should not be there: nobody wants one, or it was told to make room for another.
local function is_unwanted(known, instance)
  return known.desired ~= 'running' or known.removing == '1' or ((instance or '') ~= '' and known.retired == instance)
end

-- What may go through this session alone and was put aside while it was paused comes back now.
local function unpark_paused(phone, now)
  for _, entry in ipairs(call('ZRANGEBYSCORE', K.parked(phone), '(' .. ms(now), '+inf', 'LIMIT', 0, 5000)) do
    if call('HGET', K.message(item_of(entry).task), 'waitReason') == 'SESSION_PAUSED' then park_until(phone, now, entry) end
  end
end

-- How many messages would be left to themselves if this session went, and whether it is the number's last: what it holds and, if it is, all
-- that waits for the number. Retries are looked for among the first so many; beyond that the answer is large enough as it is.
local function left_behind(session, phone)
  local waiting = call('LLEN', K.outbox(session)) + call('LLEN', K.processing(session))
  for _, other in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do
    if other ~= session and call('HGET', K.session(other), 'removing') ~= '1' then return waiting, false end
  end
  waiting = waiting + ahead(phone, 1) + call('ZCARD', K.parked(phone))
  for _, member in ipairs(call('ZRANGE', K.task_retry(), 0, 4999)) do
    if cjson.decode(member).phone == phone then waiting = waiting + 1 end
  end
  return waiting, true
end
