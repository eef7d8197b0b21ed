-- Ends a job that cannot be read, visibly: all its messages that no worker holds fail, and an incident says why.
-- a: job, reason, now
-- Returns OK | GONE | CLOSED (it has ended, or failed before).
local run = K.job_run(a.job)
local state = call('HGET', run, 'state')
if not state then return reply('GONE') end
if state == 'FAILED' or call('EXISTS', K.job_done_emitted(a.job)) == 1 then return reply('CLOSED') end
incident('JOB_MALFORMED', a.now, {jobId = a.job, reason = a.reason})
call('HSET', run, 'state', 'FAILED', 'lastError', a.reason)
call('ZREM', K.jobs_active(), a.job)
call('ZREM', K.jobs_retry(), a.job)
end_all(a.job, 'qrspth', 'F', a.now)
return reply('OK')
