-- Registers a session of a phone. The phone is as old as the oldest of its sessions.
-- a: session, phone, driver, createdAt, timezone?, tags (JSON), limit (sessions per phone), direct? (no proxy), proxy? (id or URL of the
-- pool: the phone's from now on), profile? (id), by?, now
-- Returns OK | EXISTS (the same session and phone) | REMOVING (that one is on its way out) | TAKEN (the id belongs to another phone) |
-- PHONE_FULL | UNKNOWN_PROXY | PROXY_BAD | PROXY_FULL | PROXY_STICKY (the phone keeps another) | UNKNOWN_PROFILE |
-- PROFILE_IN_USE | SIMULATED_BESIDE_REAL (there are sessions of the other kind). Only OK changes anything.
local key = K.session(a.session)
local owner = call('HGET', key, 'phone')
if owner and owner ~= a.phone then return reply('TAKEN') end
-- Who is told that it exists would find it gone a moment later.
if owner then return reply(call('HGET', key, 'removing') == '1' and 'REMOVING' or 'EXISTS') end
-- A simulated number would take its share of a real job, and call it sent. Where both are there already, real ones are taken, simulated ones not.
local is_real, real = a.driver ~= 'simulated', tonumber(call('GET', K.sessions_real()) or nil)
if not real then
  real = 0
  for _, id in ipairs(call('SMEMBERS', K.sessions())) do
    if call('HGET', K.session(id), 'driver') ~= 'simulated' then real = real + 1 end
  end
end
if is_real ~= (real > 0) and call('EXISTS', K.sessions()) == 1 then return reply('SIMULATED_BESIDE_REAL') end
if call('SCARD', K.phone_sessions(a.phone)) >= a.limit then return reply('PHONE_FULL') end
local url
local own, is_banned = call('HGET', K.sticky_proxy(), a.phone), call('HGET', K.phone(a.phone), 'quarantined') == '1'
-- Without a proxy is another address, too.
if own and is_banned and a.direct then return reply('PROXY_STICKY') end
if a.proxy then
  url = proxy_of(a.proxy) or a.proxy
  if call('SISMEMBER', K.proxies(), url) == 0 then return reply('UNKNOWN_PROXY') end
  -- One that is bad or gone would be replaced anyway, but not for a banned phone.
  if own and own ~= url and (is_good(own) or is_banned) then return reply('PROXY_STICKY') end
  if not is_good(url) then return reply('PROXY_BAD') end
  if call('SISMEMBER', K.proxies_available(), url) == 0 then return reply('PROXY_FULL') end
end
if a.profile then
  local profile = call('HMGET', K.profile(a.profile), 'line', 'session')
  if not profile[1] then return reply('UNKNOWN_PROFILE') end
  if profile[2] then return reply('PROFILE_IN_USE') end
end
-- A worker of a former session of this name may still be there: it must not be taken for one of this.
local floor = tonumber(call('GET', K.epoch_floor()) or '0')
call('HSET', key, 'phone', a.phone, 'driver', a.driver, 'createdAt', a.createdAt, 'tags', a.tags, 'desired', 'running', 'generation', 1,
  'connection', 'STARTING', 'authorisation', 'UNLINKED', 'registeredAt', a.now, 'stateAt', a.now, 'epoch', floor)
if a.direct ~= nil then call('HSET', key, 'direct', a.direct and 1 or 0) end
call('SET', K.session_status(a.session), 'STARTING')
inherit_override(a.phone, a.session)
call('SADD', K.sessions(), a.session)
call('SET', K.sessions_real(), real + (is_real and 1 or 0))
call('SADD', K.phone_sessions(a.phone), a.session)
list_sessions(a.phone)
call('ZADD', K.phones(), 'NX', a.now, a.phone)
local oldest = tonumber(call('HGET', K.phone(a.phone), 'createdAt') or nil)
if not oldest or a.createdAt < oldest then call('HSET', K.phone(a.phone), 'createdAt', a.createdAt) end
if a.timezone then call('HSET', K.phone(a.phone), 'timezone', a.timezone) end
forget_facts(a.phone)
if url then call('HSET', K.sticky_proxy(), a.phone, url) end
if a.profile then take_profile(a.session, {phone = a.phone}, a.profile, a.now) end
audit('OPERATOR', a.now, {
  action = 'create', sessionId = a.session, phone = a.phone, by = a.by, driver = a.driver, proxy = url, profile = a.profile, direct = a.direct,
})
wake('jobs')
wake('fleet')
return reply('OK')
