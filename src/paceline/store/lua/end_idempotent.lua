-- Ends a request under an Idempotency-Key: with its answer (found again after a crash), or, without one, forgets it.
-- a: key, job, answer?, begun? (when the one that failed began: if another has taken over since, that one is at work)
-- Returns OK | OTHER (somebody else holds it now).
if call('HGET', a.key, 'job') ~= a.job then return reply('OTHER') end
if a.answer then
  call('HSET', a.key, 'state', 'done', 'answer', a.answer)
elseif a.begun and tonumber(call('HGET', a.key, 'begunAt')) ~= a.begun then
  return reply('OTHER')
elseif call('HGET', a.key, 'state') ~= 'done' then
  call('DEL', a.key)
end
return reply('OK')
