-- Commits a job whose contacts are staged: from here on it exists, and nothing of it may be lost.
-- a: job, json, total, chunks, priority, now, media?, idem {key, answer}?,
--    replay? {job, indexes, again?} (the dead letters it sends again)
-- Returns OK | EXISTS (this id was committed before) | INCOMPLETE (what is staged is not `total` contacts: stage again)
--   | NO_MEDIA (the file is not stored any more) | REPLAYED (a letter was sent again meanwhile, or proven sent).
if call('EXISTS', K.job(a.job)) == 1 then return reply('EXISTS') end
local staged = 0
for chunk = 0, a.chunks - 1 do staged = staged + call('LLEN', K.job_contacts(a.job, chunk)) end
if staged ~= a.total then return reply('INCOMPLETE') end
if media_is_gone(a.media) then return reply('NO_MEDIA') end
if a.replay and not may_replay(a.replay) then return reply('REPLAYED') end
-- The write that needs memory comes first: a full Redis refuses it, and with it everything.
create_job(a)
keep_answer(a.idem)
if a.replay then note_replay(a.replay, a.job) end
for chunk = 0, a.chunks - 1 do call('PERSIST', K.job_contacts(a.job, chunk)) end
call('LPUSH', a.priority > 1 and K.priority_jobs() or K.gateway_jobs(), a.job)
call('ZADD', K.jobs_unrouted(), a.now, a.job)
wake('jobs')
return reply('OK')
