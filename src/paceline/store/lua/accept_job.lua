-- Commits a job whose contacts are staged: from here on it exists, and nothing of it may be lost.
-- a: job, json, total, chunks, priority, now, idem {key, answer}?
-- Returns OK | EXISTS (this id was committed before) | INCOMPLETE (what is staged is not `total` contacts: stage again).
if call('EXISTS', K.job(a.job)) == 1 then return reply('EXISTS') end
local staged = 0
for chunk = 0, a.chunks - 1 do staged = staged + call('LLEN', K.job_contacts(a.job, chunk)) end
if staged ~= a.total then return reply('INCOMPLETE') end
-- The write that needs memory comes first: a full Redis refuses it, and with it everything.
create_job(a)
for chunk = 0, a.chunks - 1 do call('PERSIST', K.job_contacts(a.job, chunk)) end
call('LPUSH', a.priority > 1 and K.priority_jobs() or K.gateway_jobs(), a.job)
wake('jobs')
return reply('OK')
