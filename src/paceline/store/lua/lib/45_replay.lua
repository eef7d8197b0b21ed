-- Dead letters that are sent again, on purpose: each once, unless somebody says again.

local function may_replay(r)
  for _, index in ipairs(r.indexes) do
    -- What was proven sent since is no dead letter any more.
    if byte_of(r.job .. ':' .. index) ~= 'F' then return false end
    if not r.again and call('HEXISTS', K.job_replays(r.job), index) == 1 then return false end
  end
  return true
end

-- Kept for as long as the job whose letters they are: without that there is nothing to send again.
local function note_replay(r, job)
  local key, left = K.job_replays(r.job), call('TTL', K.job(r.job))
  for _, index in ipairs(r.indexes) do call('HSET', key, index, job) end
  if left > 0 then call('EXPIRE', key, left) end
end
