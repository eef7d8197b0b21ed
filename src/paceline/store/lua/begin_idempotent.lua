-- Begins a request under an Idempotency-Key, or says what became of it.
-- a: key, body (hash), job (a fresh id), now, stale (ms after which a holder counts as dead), ttl (seconds), holder (whose request it is), isFree?
-- (nobody works for this key at that holder: what stands here of it was cut off)
-- Returns NEW {job} | DONE {answer} | IN_FLIGHT | OTHER_BODY. A dead holder's job id is handed on, so that a job
-- it may have committed is found again instead of accepted twice.
local known = hash(a.key)
if known.body and a.now - tonumber(known.begunAt) < a.ttl * 1000 then
  if known.body ~= a.body then return reply('OTHER_BODY') end
  if known.state == 'done' then return reply('DONE', {answer = known.answer}) end
  -- Begun so far ahead of now: the clock was set back since, and nobody is to wait until it has caught up.
  local is_dead = math.abs(a.now - tonumber(known.begunAt)) >= a.stale or a.isFree and known.holder == a.holder
  if not is_dead then return reply('IN_FLIGHT') end
  call('HSET', a.key, 'begunAt', a.now, 'holder', a.holder)
  return reply('NEW', {job = known.job})
end
call('DEL', a.key)
call('HSET', a.key, 'body', a.body, 'state', 'begun', 'job', a.job, 'begunAt', a.now, 'holder', a.holder)
call('EXPIRE', a.key, a.ttl)
return reply('NEW', {job = a.job})
