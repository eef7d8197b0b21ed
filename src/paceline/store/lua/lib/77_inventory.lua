-- Proxies and profiles: who holds which. Every count is counted anew from who holds, so no step can be counted twice.

-- How a proxy is named where credentials must not be.
local function proxy_id(url)
  local number = call('ZSCORE', K.proxies_numbers(), url)
  return number and string.format('p%.0f', number) or ''
end

-- The URL of a proxy's id, nil if there is none.
local function proxy_of(id)
  local number = string.match(id, '^p(%d+)$')
  return number and call('ZRANGEBYSCORE', K.proxies_numbers(), number, number)[1] or nil
end

-- Good means: it may be given to a session.
local function is_good(url) return call('ZSCORE', K.proxies_load(), url) and true or false end

local function set_count(key, field, count)
  if count > 0 then call('HSET', key, field, count) else call('HDEL', key, field) end
end

-- A good proxy's place among those that have room.
local function place_proxy(url, count)
  call('ZADD', K.proxies_load(), count, url)
  local limit = tonumber(call('HGET', K.inventory(), 'maxSessionsPerProxy') or '4')
  call(count < limit and 'SADD' or 'SREM', K.proxies_available(), url)
end

-- After a change of who holds it.
local function count_proxy(url)
  local count = call('SCARD', K.proxy_sessions(url))
  set_count(K.proxy_active(), url, count)
  if is_good(url) then place_proxy(url, count) end
end

-- How many sessions of a phone have a worker.
local function active_of(phone)
  local count = 0
  for _, id in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do
    if call('HGET', K.session(id), 'holds') == '1' then count = count + 1 end
  end
  return count
end

-- The limit is a setting. When it changes, those lose or gain room that carry as many sessions as lie between the two.
local function keep_limit(limit)
  local was = tonumber(call('HGET', K.inventory(), 'maxSessionsPerProxy') or '4')
  if was == limit then return end
  call('HSET', K.inventory(), 'maxSessionsPerProxy', limit)
  for _, url in ipairs(call('ZRANGEBYSCORE', K.proxies_load(), math.min(was, limit), '(' .. math.max(was, limit))) do
    call(was < limit and 'SADD' or 'SREM', K.proxies_available(), url)
  end
end

local function binding(session, known, now, fields)
  fields.sessionId, fields.phone, fields.instance = session, known.phone, known.wantedInstance
  audit('BINDING', now, fields)
end

-- Takes the proxy from a session. The sticky one of its phone stays: the next start takes it again.
local function give_back_proxy(session, known, now, reason)
  local url = known.proxy or ''
  if url == '' then return end
  call('SREM', K.proxy_sessions(url), session)
  call('HSET', K.session(session), 'proxy', '')
  count_proxy(url)
  binding(session, known, now, {action = 'PROXY_RELEASED', status = 'RELEASED', proxy = url, proxyId = proxy_id(url), reason = reason})
  known.proxy = ''
end

-- The worker of a session is gone: its places are free again. Its profile stays with it. True if it held any.
local function let_go(session, known, now, reason)
  if known.holds ~= '1' then return false end
  give_back_proxy(session, known, now, reason)
  -- What it took of its host it takes no more.
  call('HDEL', K.session(session), 'holds', 'leaving', 'memoryBytes', 'cpuMs', 'usageAt')
  -- Empty, not absent: an instance that comes late is not wanted.
  call('HSET', K.session(session), 'wantedInstance', '')
  known.holds = nil
  set_count(K.phone_active(), known.phone, active_of(known.phone))
  return true
end

-- What a profile says about its session; what the session or its phone has already is not overwritten. A phone is as old as the
-- oldest word about it.
local function apply_profile(session, phone, profile)
  local known = call('HMGET', K.session(session), 'tags', 'displayName')
  if profile.tags and (not known[1] or known[1] == '[]' or known[1] == '{}') then call('HSET', K.session(session), 'tags', profile.tags) end
  if profile.displayName and not known[2] then call('HSET', K.session(session), 'displayName', profile.displayName) end
  if profile.timezone then call('HSETNX', K.phone(phone), 'timezone', profile.timezone) end
  forget_facts(phone)
  local created = tonumber(profile.createdAt or nil)
  if not created then return end
  for _, key in ipairs({K.session(session), K.phone(phone)}) do
    if created < tonumber(call('HGET', key, 'createdAt') or '0') then call('HSET', key, 'createdAt', profile.createdAt) end
  end
end

-- A profile from the pool becomes this session's. False if another has it, or there is none of that id.
local function take_profile(session, known, id, now)
  local profile = hash(K.profile(id))
  if not profile.line or (profile.session and profile.session ~= session) then return false end
  if profile.session == session then return true end
  call('SREM', K.profiles_available(), id)
  call('ZREM', K.profiles_free(), id)
  call('SADD', K.profiles_used(), id)
  call('HSET', K.profile(id), 'session', session)
  call('HSET', K.session(session), 'profile', id)
  apply_profile(session, known.phone, profile)
  binding(session, known, now, {action = 'PROFILE_TAKEN', status = 'BOUND', profile = id})
  return true
end

-- Back into the pool, when its session goes for good.
local function give_back_profile(session, known, now)
  local id = known.profile or ''
  if id == '' or call('HGET', K.profile(id), 'session') ~= session then return end
  call('HDEL', K.profile(id), 'session')
  call('SREM', K.profiles_used(), id)
  call('SADD', K.profiles_available(), id)
  call('ZADD', K.profiles_free(), call('ZSCORE', K.profiles_numbers(), id), id)
  binding(session, known, now, {action = 'PROFILE_RELEASED', status = 'RELEASED', profile = id, reason = 'REMOVED'})
end
