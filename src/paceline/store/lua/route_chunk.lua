-- Applies a router's decisions for the next tasks of a job, in order, and moves its cursor past them.
-- a: job, cursor (expected), tasks [{index, to?, tz?, expiresAt?, phone?, seen?, seenWarm? | ends? (E, O)}], priority, total, named?, now
-- Returns OK {cursor} | STALE (another router was here) | CLOSED (the job takes no more).
-- It stops early where a contact was bound to another phone meanwhile; the caller decides that one again.
local only_ends = true
for _, item in ipairs(a.tasks) do only_ends = only_ends and item.ends ~= nil end
local over, run = turn_is_over(a.job, a.cursor, only_ends), K.job_run(a.job)
if over then return over end
took_turn(a.job)
local cursor, accepted_at = a.cursor, call('HGET', run, 'acceptedAt')
for _, item in ipairs(a.tasks) do
  local index = whole(item.index)
  local task = a.job .. ':' .. index
  if item.phone then
    local bound, _, warm = sticky_of(item.to)
    local is_elsewhere = bound and bound ~= item.phone
    -- They wrote to that number since the look: the conversation stays there, unless the job names its own.
    local became_warm = not a.named and (warm or 0) > (item.seenWarm or 0)
    if is_elsewhere and (bound ~= item.seen or became_warm) then break end
    if move(task, 'r', a.now) then
      item.priority = a.priority
      enqueue(item.phone, task, item, a.now)
      call('HSET', K.job_routes(a.job), index, item.phone)
      bind(item.to, item.phone, a.now)
      note_person(item.to, task, accepted_at)
    end
  else
    move(task, item.ends, a.now)
  end
  cursor = item.index + 1
end
-- Ending tasks may have closed the job; its state is final then.
if job_is_paused(a.job) then
  call('HSET', run, 'cursor', cursor)
  call('ZREM', K.jobs_active(), a.job)
  if cursor < a.total then call('ZADD', K.jobs_retry(), a.now, a.job) end
elseif call('EXISTS', K.job_done_emitted(a.job)) == 0 then
  call('HSET', run, 'cursor', cursor, 'state', cursor >= a.total and 'ROUTED' or 'ROUTING')
  call('HDEL', run, 'lastError', 'waitReason', 'waitUntil')
  if cursor >= a.total then
    call('ZREM', K.jobs_active(), a.job)
    call('ZREM', K.jobs_unrouted(), a.job)
  else
    call('ZADD', K.jobs_active(), a.now, a.job)
  end
else
  call('HSET', run, 'cursor', cursor)
end
return reply('OK', {cursor = cursor})
