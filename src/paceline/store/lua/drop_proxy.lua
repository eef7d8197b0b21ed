-- Takes a proxy out of the pool, if no session holds it. A phone that keeps it gets another at its next start, unless it is banned.
-- a: proxy (its id), by, now
-- Returns OK | UNKNOWN_PROXY | IN_USE {sessions}.
local url = proxy_of(a.proxy)
if not url then return reply('UNKNOWN_PROXY') end
local holders = call('SMEMBERS', K.proxy_sessions(url))
if #holders > 0 then
  table.sort(holders)
  return reply('IN_USE', {sessions = holders})
end
for _, key in ipairs({K.proxies(), K.proxies_available(), K.proxies_bad()}) do call('SREM', key, url) end
for _, key in ipairs({K.proxies_load(), K.proxies_numbers()}) do call('ZREM', key, url) end
call('DEL', K.proxy_status(url), K.proxy_about(url))
audit('OPERATOR', a.now, {action = 'PROXY_REMOVED', by = a.by, proxy = url, proxyId = a.proxy})
return reply('OK')
