-- Forgets files that no open job needs and that were last used before a time; the caller removes their bytes.
-- a: before, now, limit
-- Returns OK {refs [ref …], more}: those that are forgotten now; `more` if there may be others.
local refs = {}
local old = call('ZRANGEBYSCORE', K.media_kept(), '-inf', '(' .. string.format('%d', a.before), 'LIMIT', 0, a.limit)
for _, ref in ipairs(old) do
  if call('ZCARD', K.media_jobs(ref)) > 0 then
    -- Still needed: it counts as used now, so that it is not looked at every time.
    call('HSET', K.media(ref), 'lastUsedAt', a.now)
    call('ZADD', K.media_kept(), a.now, ref)
  else
    call('DEL', K.media(ref))
    call('ZREM', K.media_kept(), ref)
    refs[#refs + 1] = ref
  end
end
return reply('OK', {refs = list(refs), more = #old == a.limit})
