-- What workers take of their host, as last measured. Whoever has given back its places meanwhile takes nothing.
-- a: used [{session, memory (bytes), cpu (ms since its start)}], now
-- Returns OK.
for _, one in ipairs(a.used) do
  local key = K.session(one.session)
  if call('HGET', key, 'holds') == '1' then call('HSET', key, 'memoryBytes', one.memory, 'cpuMs', one.cpu, 'usageAt', a.now) end
end
return reply('OK')
