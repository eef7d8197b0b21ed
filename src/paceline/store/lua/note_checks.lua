-- How proxies did when they were last asked for something.
-- a: checks [{proxy (its id), failures, successes, fault, took (ms)}], now
-- Returns OK. One that was taken out meanwhile is passed over.
for _, one in ipairs(a.checks) do
  local url = proxy_of(one.proxy)
  if url then
    call('HSET', K.proxy_about(url), 'checkedAt', a.now, 'failures', one.failures, 'successes', one.successes, 'fault', one.fault,
      'latencyMs', one.took)
  end
end
return reply('OK')
