-- Takes new jobs into the round, wakes those that waited for a number, and gives the job whose turn it is.
-- a: now, lease (ms the turn may take before another router repeats it)
-- Returns OK {job, json, state, cursor} | BROKEN {job} (an id nobody can read; already put aside) | NONE {nextAt?} (also while the
-- dispatchers are stopped).
local function take(key)
  local id = call('RPOP', key)
  if not id then return false end
  -- A paused job joins the round when it is resumed.
  if not job_is_paused(id) then call('ZADD', K.jobs_active(), a.now, id) end
  if call('EXISTS', K.job_run(id)) == 1 then took_turn(id) end
  return true
end

-- Of those that are due, the one whose last turn was longest ago: whoever looks first takes what room there is, so with any other
-- order one job could take all of it, always.
local function whose_turn(due)
  local found, least
  for _, id in ipairs(due) do
    local turn = tonumber(call('HGET', K.job_run(id), 'turn') or '0')
    if not least or turn < least then found, least = id, turn end
  end
  return found
end

if call('HGET', K.fleet(), 'stopped') == '1' then return reply('NONE') end
for _ = 1, 100 do
  if not (take(K.priority_jobs()) or take(K.gateway_jobs())) then break end
end
for _, id in ipairs(call('ZRANGEBYSCORE', K.jobs_retry(), '-inf', a.now, 'LIMIT', 0, 100)) do
  call('ZREM', K.jobs_retry(), id)
  call('ZADD', K.jobs_active(), a.now, id)
end
local id = whose_turn(call('ZRANGEBYSCORE', K.jobs_active(), '-inf', a.now, 'LIMIT', 0, 100))
if not id then return reply('NONE', {nextAt = first_score({K.jobs_active(), K.jobs_retry()})}) end
local json, run = call('GET', K.job(id)), hash(K.job_run(id))
if not json or not run.state then
  call('ZREM', K.jobs_active(), id)
  incident('JOB_MALFORMED', a.now, {jobId = id, reason = 'no such job'})
  return reply('BROKEN', {job = id})
end
call('ZADD', K.jobs_active(), a.now + a.lease, id)
return reply('OK', {job = id, json = json, state = run.state, cursor = tonumber(run.cursor)})
