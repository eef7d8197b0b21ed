-- A job that cannot go on now waits, visibly, for its next turn.
-- a: job, cursor (expected), reason, nextAt, now
-- Returns OK | STALE (another router was here, or the job was resumed meanwhile) | CLOSED.
local LONGEST_MS = 60000
local over, run = turn_is_over(a.job, a.cursor, a.reason == 'JOB_PAUSED'), K.job_run(a.job)
if over then return over end
if a.reason == 'JOB_PAUSED' then
  -- Resumed since the look: it has its place among the active ones, and a second one would be found when all is routed.
  if not job_is_paused(a.job) then return reply('STALE') end
  -- Nothing but the end of its messages' validity needs a look.
  call('ZREM', K.jobs_active(), a.job)
  call('ZADD', K.jobs_retry(), a.nextAt, a.job)
  return reply('OK')
end
-- Jobs that wait for room look again together, so that the one served longest ago comes first. One that has longer to wait than a queue takes
-- to make room (its number rests for the day) does so alone: it would hold up all others.
if a.reason == 'WAITING_FOR_ROOM' and a.nextAt <= a.now + LONGEST_MS then
  local together = tonumber(call('GET', K.jobs_room()) or '0')
  if together > a.now then a.nextAt = together else call('SET', K.jobs_room(), a.nextAt) end
end
call('HSET', run, 'waitReason', a.reason, 'waitUntil', a.nextAt)
-- No number at all, or none that may start a new chat.
if a.reason == 'NO_SESSIONS_AVAILABLE' or a.reason == 'TIME_LOCKED' or a.reason == 'CAPPED' then
  call('HSET', run, 'state', 'QUEUED', 'lastError', a.reason)
  call('ZREM', K.jobs_active(), a.job)
  call('ZADD', K.jobs_retry(), a.nextAt, a.job)
else
  call('ZADD', K.jobs_active(), a.nextAt, a.job)
end
return reply('OK')
