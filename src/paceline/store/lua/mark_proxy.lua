-- Somebody found a proxy bad, or good again. Bad: nobody gets it, and each session that holds it is moved, once.
-- a: proxy (its id), state (OK | BAD), reason, by, check? (the checks found it out, no person said so), now
-- Returns OK {changed, moved? [session …], kept? [session …]} | UNKNOWN_PROXY.
-- Moved: the session wants a new worker (generation + 1, PROXY_BAD). It holds the proxy until that one begins, and only then the phone
-- keeps another: if it is banned before, the address it was banned on is still its own. Kept: a banned phone's session stays where it is
-- (I10). The same again moves whoever was kept and is banned no longer.
local url = proxy_of(a.proxy)
if not url then return reply('UNKNOWN_PROXY') end
local was = call('GET', K.proxy_status(url)) or 'OK'
local changed, moved, kept = was ~= a.state, {}, {}
-- Said by a person of what the checks had found: from now on it is the person's word, and no check undoes it.
local is_confirmed = not changed and a.state == 'BAD' and not a.check and call('HGET', K.proxy_about(url), 'by') ~= a.by
if changed or is_confirmed then call('HSET', K.proxy_about(url), 'reason', a.reason, 'by', a.by) end
if changed then
  call('SET', K.proxy_status(url), a.state)
  call('HSET', K.proxy_about(url), 'since', a.now)
  -- What the checks counted before this word does not count against it.
  call('HDEL', K.proxy_about(url), 'failures', 'successes')
end
if a.state == 'OK' then
  call('SREM', K.proxies_bad(), url)
  place_proxy(url, call('SCARD', K.proxy_sessions(url)))
else
  call('SADD', K.proxies_bad(), url)
  call('SREM', K.proxies_available(), url)
  call('ZREM', K.proxies_load(), url)
  local holders = call('SMEMBERS', K.proxy_sessions(url))
  table.sort(holders)
  for _, id in ipairs(holders) do
    local known = hash(K.session(id))
    if call('HGET', K.phone(known.phone), 'quarantined') == '1' then
      kept[#kept + 1] = id
    -- One that is to stop anyway, or has failed, only lets go of it.
    elseif known.leaving ~= url and known.desired == 'running' and known.removing ~= '1' and known.connection ~= 'FAILED' then
      call('HSET', K.session(id), 'leaving', url)
      new_worker(id, 'PROXY_BAD', false)
      put_state(id, 'STARTING', nil, 0, a.now)
      rescan(known.phone, a.now)
      wake('outbox:' .. id)
      binding(id, known, a.now, {action = 'PROXY_LEFT', status = 'MOVING', proxy = url, proxyId = a.proxy, reason = a.reason, by = a.by})
      moved[#moved + 1] = id
    end
  end
end
if changed or is_confirmed then
  audit('OPERATOR', a.now, {action = 'PROXY_' .. a.state, proxy = url, proxyId = a.proxy, reason = a.reason, by = a.by})
end
if changed then
  incident('PROXY_' .. a.state, a.now, {proxyId = a.proxy, proxy = proxy_host(url), reason = a.reason, by = a.by, moved = #moved})
end
if changed or #moved > 0 then wake('fleet') end
return reply('OK', {changed = changed, moved = list(moved), kept = list(kept)})
