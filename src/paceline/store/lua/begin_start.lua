-- A worker of a session is to be started: takes its place on its phone, a proxy and, if the pool has one, a profile. Everything or nothing.
-- a: session, generation, instance, perProxy, perPhone, after? (the instance wanted before, as who decided saw it), now
-- Returns OK {proxy, proxyId, profile} | AGAIN (the same; this instance was begun before) | STALE (another generation is wanted, or another was begun since)
-- | NOT_WANTED (stopped, failed, being removed, unknown) | NO_PROXY (the session waits; it holds nothing) | PHONE_FULL.
-- To be called when no worker of an older generation runs. A session that holds its places keeps them and is counted once; a proxy
-- that was marked bad meanwhile is replaced. The phone keeps its proxy; that of a banned phone is never replaced (I10).
local key = K.session(a.session)
local known = hash(key)
if not known.phone or known.desired ~= 'running' or known.removing == '1' or known.connection == 'FAILED' then return reply('NOT_WANTED') end
if tonumber(known.generation or '1') ~= a.generation then return reply('STALE') end
if known.wantedInstance == a.instance then
  local url = known.proxy or ''
  return reply('AGAIN', {proxy = url, proxyId = proxy_id(url), profile = known.profile or ''})
end
if a.after and a.after ~= (known.wantedInstance or '') then return reply('STALE') end
local phone, held = known.phone, known.proxy or ''

-- A driver that needs none gets none unless it was asked for; rows from before there were proxies say nothing about it.
local is_direct = known.direct == '1' or (known.direct == nil and known.driver == 'simulated')

-- The proxy to go out by; nil if there is none. The second value tells why it is not the phone's own.
local function choose()
  local sticky = call('HGET', K.sticky_proxy(), phone)
  if held ~= '' and is_good(held) then return held end
  if sticky then
    local load = tonumber(call('ZSCORE', K.proxies_load(), sticky) or nil)
    if load and load < a.perProxy then return sticky end
    -- What a ban is about must not come back from another address.
    if call('HGET', K.phone(phone), 'quarantined') == '1' then return nil end
  end
  local free = call('ZRANGEBYSCORE', K.proxies_load(), '-inf', '(' .. a.perProxy, 'LIMIT', 0, 1)[1]
  return free, sticky and (is_good(sticky) and 'STICKY_FULL' or 'STICKY_BAD') or 'FIRST'
end

-- If its own proxy is full with sessions of this very phone, that one stays the phone's.
local function keeps_sticky(sticky)
  if not sticky or not is_good(sticky) then return false end
  for _, id in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do
    if id ~= a.session and call('HGET', K.session(id), 'proxy') == sticky then return true end
  end
  return false
end

-- It cannot start now; that is told once.
local function waits(why)
  if known.waitReason ~= why then
    call('HSET', key, 'waitReason', why, 'troubleTold', 1)
    incident('SESSION_WAITING', a.now, {sessionId = a.session, phone = phone, reason = why})
  end
  return reply(why)
end

if known.holds ~= '1' and active_of(phone) >= a.perPhone then return waits('PHONE_FULL') end
local url, reason = '', nil
if not is_direct then
  url, reason = choose()
  if not url then
    let_go(a.session, known, a.now, 'NO_PROXY')
    call('HSET', K.inventory(), 'proxyAsked', 1)
    return waits('NO_PROXY')
  end
end

call('HSET', key, 'holds', 1, 'wantedInstance', a.instance, 'startedAt', a.now, 'startedGeneration', a.generation)
call('HDEL', key, 'waitReason', 'leaving')
-- One that speaks already is only adopted: it says nothing twice, so what it said stays.
if known.instanceId ~= a.instance then put_state(a.session, 'STARTING', nil, 0, a.now) end
keep_limit(a.perProxy)
set_count(K.phone_active(), phone, active_of(phone))
if url ~= held then
  give_back_proxy(a.session, known, a.now, reason or 'DIRECT')
  call('HSET', key, 'proxy', url)
end
-- What is taken from here on is this worker's.
known.wantedInstance = a.instance
if url ~= '' and url ~= held then
  call('SADD', K.proxy_sessions(url), a.session)
  count_proxy(url)
  if not keeps_sticky(call('HGET', K.sticky_proxy(), phone)) then call('HSET', K.sticky_proxy(), phone, url) end
  binding(a.session, known, a.now, {action = 'PROXY_TAKEN', status = 'BOUND', proxy = url, proxyId = proxy_id(url), reason = reason or 'STICKY'})
end
local profile = known.profile or ''
if profile == '' and not is_direct then
  local free = call('ZRANGE', K.profiles_free(), 0, 0)[1]
  if free and take_profile(a.session, known, free, a.now) then profile = free end
end
return reply('OK', {proxy = url, proxyId = proxy_id(url), profile = profile})
