-- Stages one chunk of a job's contacts, before the job exists. Repeating it writes the same again.
-- a: job, chunk, contacts [text …]
-- Returns OK | EXISTS (committed meanwhile: a gateway that was cut off and goes on late must not put a TTL on it).
-- The TTL frees what a crashed gateway left; accept_job removes it.
if call('EXISTS', K.job(a.job)) == 1 then return reply('EXISTS') end
local key = K.job_contacts(a.job, a.chunk)
-- Only if there is one: a write that frees memory would let the next one pass in a full Redis.
if call('EXISTS', key) == 1 then call('DEL', key) end
call('RPUSH', key, unpack(a.contacts))
call('EXPIRE', key, C.staging_ttl)
return reply('OK')
