-- Holds a job: what no worker has claimed waits until resume_job. Routers get no turn for it, dispatchers park its tasks when they come
-- to the head, and the gate refuses what was handed over before.
-- a: job, now, expiresAt? (when the first message at its cursor ends: a router looks then, for that alone)
-- Returns OK {state, pausedAt, waiting, claimed} | GONE | CLOSED {state}. Repeating it says the same and changes nothing.
local run = K.job_run(a.job)
local known = call('HMGET', run, 'state', 'pausedAt')
local state, paused_at = known[1], tonumber(known[2] or nil)
if not state then return reply('GONE') end
-- A canceled or failed job has no end while a worker still holds something of it; pausing must not bring the rest back.
if state == 'CANCELED' or state == 'FAILED' or call('EXISTS', K.job_done_emitted(a.job)) == 1 then return reply('CLOSED', {state = state}) end
if state ~= 'PAUSED' then
  call('ZREM', K.jobs_active(), a.job)
  call('ZREM', K.jobs_retry(), a.job)
  if a.expiresAt then call('ZADD', K.jobs_retry(), a.expiresAt, a.job) end
  call('HSET', run, 'state', 'PAUSED', 'pausedAt', a.now, 'waitReason', 'JOB_PAUSED')
  call('HDEL', run, 'waitUntil', 'lastError')
  job_event('JOB_PAUSED', a.job, a.now)
  tell('job.paused', a.now, 'job', a.job)
  paused_at = a.now
end
local states = call('GET', K.job_states(a.job))
local function number_of(bytes) return select(2, string.gsub(states, bytes, '')) end
return reply('OK', {state = 'PAUSED', pausedAt = paused_at, waiting = number_of('[qrspth]'), claimed = number_of('[cu]')})
