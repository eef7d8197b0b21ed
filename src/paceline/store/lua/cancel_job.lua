-- Stops everything of a job that no worker has claimed. Each of those messages ends `canceled`; nothing vanishes.
-- a: job, now
-- Returns OK {canceled, open} | GONE | CLOSED {state}. Repeating it cancels what came back meanwhile (a returned claim).
local run = K.job_run(a.job)
local state = call('HGET', run, 'state')
if not state then return reply('GONE') end
if state ~= 'CANCELED' and call('EXISTS', K.job_done_emitted(a.job)) == 1 then return reply('CLOSED', {state = state}) end
call('HSET', run, 'state', 'CANCELED')
call('HDEL', run, 'waitReason', 'waitUntil', 'lastError')
call('ZREM', K.jobs_active(), a.job)
call('ZREM', K.jobs_retry(), a.job)
-- One by one only those that may have gone out before and wait for a second try; all others end in one go.
for index in string.gmatch(call('GET', K.job_states(a.job)), '()[tph]') do
  local task = a.job .. ':' .. (index - 1)
  if call('HGET', K.message(task), 'maybeSent') == '1' then end_canceled(task, a.now) end
end
-- A single send counts as waiting for its number until it goes, or is canceled. Where it lies it is dropped when its time comes.
local phone = call('HGET', K.job_routes(a.job), 0)
if phone and call('STRLEN', K.job_states(a.job)) == 1 then call('SREM', K.singles(phone), a.job .. ':0') end
local canceled = end_all(a.job, 'qrspth', 'X', a.now)
return reply('OK', {canceled = canceled, open = tonumber(call('GET', K.job_open(a.job)))})
