-- Puts proxies into the pool. One that is there already stays as it is, also if it is marked bad.
-- a: urls, limit (of the whole pool), by, now
-- Returns OK {added, duplicates, refused? [position from 0 …]}: refused are those for which the pool has no room.
local added, duplicates, refused = 0, 0, {}
local size = call('SCARD', K.proxies())
for position, url in ipairs(a.urls) do
  if call('ZSCORE', K.proxies_numbers(), url) then
    duplicates = duplicates + 1
  elseif size + added >= a.limit then
    refused[#refused + 1] = position - 1
  else
    added = added + 1
    call('ZADD', K.proxies_numbers(), call('HINCRBY', K.inventory(), 'lastProxy', 1), url)
    call('SADD', K.proxies(), url)
    call('SET', K.proxy_status(url), 'OK')
    call('HSET', K.proxy_about(url), 'addedAt', a.now)
    place_proxy(url, 0)
  end
end
if added > 0 then
  audit('OPERATOR', a.now, {action = 'PROXIES_ADDED', by = a.by, added = added})
  wake('fleet')
end
return reply('OK', {added = added, duplicates = duplicates, refused = list(refused)})
