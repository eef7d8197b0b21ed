-- Lets a paused job go on: its cursor gets turns again, and what was parked because of the pause comes back at once.
-- a: job, now, tasks (parked tasks looked at, at most), entries (parked entries read, at most)
-- Returns OK {state, released} | GONE | CLOSED {state} | NOT_PAUSED {state}.
-- What lies beyond the limits follows by itself: the dispatcher looks at what a pause parked every few minutes.
local run = K.job_run(a.job)
local known = call('HMGET', run, 'state', 'cursor')
if not known[1] then return reply('GONE') end
if known[1] == 'CANCELED' or known[1] == 'FAILED' or call('EXISTS', K.job_done_emitted(a.job)) == 1 then
  return reply('CLOSED', {state = known[1]})
end
if known[1] ~= 'PAUSED' then return reply('NOT_PAUSED', {state = known[1]}) end

local states, cursor = call('GET', K.job_states(a.job)), tonumber(known[2])
local state = cursor >= #states and 'ROUTED' or cursor > 0 and 'ROUTING' or 'QUEUED'
call('HSET', run, 'state', state)
call('HDEL', run, 'pausedAt', 'waitReason', 'waitUntil')
call('ZREM', K.jobs_retry(), a.job)
if cursor < #states then call('ZADD', K.jobs_active(), a.now, a.job) end
job_event('JOB_RESUMED', a.job, a.now)
wake('jobs')

-- The phones it is parked at; a task's own entry there is not known, so each phone's are read once.
local phones, looked = {}, 0
for index in string.gmatch(states, '()p') do
  if looked == a.tasks then break end
  looked = looked + 1
  local about = message_of(a.job .. ':' .. (index - 1))
  if about.waitReason == 'JOB_PAUSED' then phones[about.phone] = true end
end

local released, read = 0, 0
for phone in pairs(phones) do
  if read >= a.entries then break end
  for _, entry in ipairs(call('ZRANGE', K.parked(phone), 0, a.entries - 1)) do
    read = read + 1
    local task = item_of(entry).task
    if split(task) == a.job and call('HGET', K.message(task), 'waitReason') == 'JOB_PAUSED' then
      park_until(phone, a.now, entry)
      released = released + 1
    end
  end
  rescan(phone, a.now)
end
return reply('OK', {state = state, released = released})
