-- Jobs: what both ways of accepting one (a job, a single send) write.

-- j: job, json, total, now, idem {key, answer}?
local function create_job(j)
  call('SET', K.job(j.job), j.json)
  call('SET', K.job_states(j.job), string.rep('q', j.total))
  call('HSET', K.job_run(j.job), 'state', 'QUEUED', 'cursor', 0, 'acceptedAt', j.now)
  call('MSET', K.job_total(j.job), j.total, K.job_open(j.job), j.total, K.job_sent(j.job), 0, K.job_failed(j.job), 0)
  job_event('JOB_ACCEPTED', j.job, j.now, {total = j.total})
  -- A key that was freed meanwhile would come back without a TTL.
  if j.idem and call('EXISTS', j.idem.key) == 1 then call('HSET', j.idem.key, 'state', 'done', 'answer', j.idem.answer) end
end

-- Turns are counted, not timed: two in the same millisecond have an order too.
local function took_turn(job) call('HSET', K.job_run(job), 'turn', call('INCR', K.turn_counter())) end

-- The answer to a router whose turn is over: another was here, or the job takes no more. Nothing if the turn is its own.
-- Of a paused job messages may still end (their validity does not wait), but none may go anywhere.
local function turn_is_over(job, cursor, only_ends)
  local run = call('HMGET', K.job_run(job), 'cursor', 'state')
  if tonumber(run[1] or '-1') ~= cursor then return reply('STALE') end
  if run[2] == 'QUEUED' or run[2] == 'ROUTING' or (run[2] == 'PAUSED' and only_ends) then return nil end
  call('ZREM', K.jobs_active(), job)
  return reply('CLOSED')
end

-- This phone writes to this person: provisional at routing, confirmed by a send. One who wrote to another phone stays with that one.
local function bind(to, phone, now)
  local key = K.sticky(to)
  local known = call('HMGET', key, 'phone', 'warm')
  local is_warm = tonumber(known[2] or '0') > now - C.warm_ms
  if is_warm and known[1] ~= phone then return end
  if known[1] ~= phone then call('HDEL', key, 'warm') end
  call('HSET', key, 'phone', phone, 'at', now)
  -- Never shorter than it was: a warm chat is remembered for long.
  if not is_warm then call('EXPIRE', key, C.sticky_ttl) end
end
