-- Tasks: the only place where a task's byte changes, and what follows from the change (counters, the job's end).

-- The job of a task and its index there, both as text. A verb asks for the same few times.
local job_of, index_of = {}, {}
local function split(task)
  local job = job_of[task]
  if job then return job, index_of[task] end
  -- Cut at the colon: a pattern over all of it takes several times as long.
  local at = string.find(task, ':', 1, true)
  local index = at and string.sub(task, at + 1)
  if not at or at == 1 or not string.find(index, '^%d+$') then return nil end
  job_of[task], index_of[task] = string.sub(task, 1, at - 1), index
  return job_of[task], index
end

-- A verb that serves many tasks gathers them by job: their bytes are read at its start and what became of them is written at its end, by a
-- command or two for each job instead of several for each task. Where `pages` is nil there is one task, and all is written at once.
local pages

local function gather(tasks)
  pages = {}
  for _, task in ipairs(tasks) do
    local job, index = split(task)
    if job then
      local page = pages[job]
        or {bytes = {}, asked = {}, reads = {}, writes = {}, unrouted = {}, told = {{}, {}, {}}, sent = 0, failed = 0, ended = 0}
      local reads, count = page.reads, #page.asked
      pages[job], page.asked[count + 1] = page, index
      reads[count * 3 + 1], reads[count * 3 + 2], reads[count * 3 + 3] = 'GET', 'u8', '#' .. index
    end
  end
  for job, page in pairs(pages) do
    local found = redis.pcall('BITFIELD_RO', K.job_states(job), unpack(page.reads))
    -- One that cannot be read is found out by whoever needs it.
    if found.err then pages[job] = nil end
    for i, index in ipairs(page.asked) do page.bytes[index] = found[i] and found[i] > 0 and string.char(found[i]) or '' end
  end
end

local function page_of(job) return pages and pages[job] end

local function byte_of(task)
  local job, index = split(task)
  local page = page_of(job)
  return page and page.bytes[index] or call('GETRANGE', K.job_states(job), index, index)
end

local function put_byte(page, job, index, to)
  if not page then return call('SETRANGE', K.job_states(job), index, to) end
  local writes = page.writes
  page.bytes[index] = to
  local count = #writes
  writes[count + 1], writes[count + 2], writes[count + 3], writes[count + 4] = 'SET', 'u8', '#' .. index, whole(string.byte(to))
end

-- It lies in no phone's queue any more.
local function unroute(job, index)
  local page = page_of(job)
  if page then page.unrouted[#page.unrouted + 1] = index else call('HDEL', K.job_routes(job), index) end
end

-- The file of an ended job is needed no longer; from here on its retention counts.
local function release_media(ref, job, now)
  call('ZREM', K.media_jobs(ref), job)
  if call('EXISTS', K.media(ref)) == 0 then return end
  call('HSET', K.media(ref), 'lastUsedAt', ms(now))
  call('ZADD', K.media_kept(), 'GT', ms(now), ref)
end

-- Jobs that are routed no more. Those that write_gathered ends leave together.
local closed
local function leave_round(jobs)
  if #jobs == 0 then return end
  for _, key in ipairs({K.jobs_active(), K.jobs_unrouted(), K.jobs_retry()}) do call('ZREM', key, unpack(jobs)) end
end

local function close_job(job, now)
  if not call('SET', K.job_done_emitted(job), ms(now), 'NX', 'EX', C.job_ttl) then return end
  local run, states = K.job_run(job), call('GETEX', K.job_states(job), 'EX', C.job_ttl)
  local state, media, reason, wait_until, paused_at, problem =
    unpack(call('HMGET', run, 'state', 'media', 'waitReason', 'waitUntil', 'pausedAt', 'lastError'))
  if media then release_media(media, job, now) end
  if state ~= 'CANCELED' and state ~= 'FAILED' then state = string.find(states, '[FE]') and 'DONE_WITH_ERRORS' or 'DONE' end
  call('HSET', run, 'state', state, 'closedAt', ms(now))
  if reason or wait_until or paused_at then call('HDEL', run, 'waitReason', 'waitUntil', 'pausedAt') end
  if problem and state ~= 'FAILED' then call('HDEL', run, 'lastError') end
  if closed then closed[#closed + 1] = job else leave_round({job}) end
  local function count(bytes) return select(2, string.gsub(states, bytes, '')) end
  local sums = {
    state = state, total = #states, sent = count('[SDR]'), failed = count('F'),
    expired = count('E'), canceled = count('X'), suppressed = count('O'),
  }
  job_event('JOB_DONE', job, now, sums)
  tell('job.done', now, 'job', job, 'state', state, 'total', whole(#states), 'sent', whole(sums.sent), 'failed', whole(sums.failed),
    'expired', whole(sums.expired), 'canceled', whole(sums.canceled), 'suppressed', whole(sums.suppressed))
  local rare = {K.job_routes(job), K.job_replays(job)}
  call('EXPIRE', K.job(job), C.job_ttl)
  call('EXPIRE', run, C.job_ttl)
  -- Mostly neither is there.
  if call('EXISTS', unpack(rare)) > 0 then
    for _, key in ipairs(rare) do call('EXPIRE', key, C.job_ttl) end
  end
  for chunk = 0, math.floor((#states - 1) / C.chunk) do call('EXPIRE', K.job_contacts(job, chunk), C.job_ttl) end
  for _, key in ipairs({K.job_total(job), K.job_sent(job), K.job_failed(job), K.job_open(job)}) do
    call('EXPIRE', key, C.stats_ttl)
  end
end

-- The stats of an ended job may have been freed already; a correction must not bring them back, wrong and for ever. A count that comes only
-- now goes with the others.
local function correct(job, key, by)
  local left = call('PTTL', K.job_total(job))
  if left == -2 then return end
  call('INCRBY', key, by)
  if left > 0 then call('PEXPIRE', key, ms(left)) end
end

-- Messages of a job that went out, were given up, ended; the last to end closes it.
local function count_in(job, sent, failed, ended, now)
  if sent ~= 0 then call('INCRBY', K.job_sent(job), whole(sent)) end
  if failed ~= 0 then call('INCRBY', K.job_failed(job), whole(failed)) end
  if ended ~= 0 and call('DECRBY', K.job_open(job), whole(ended)) == 0 then close_job(job, now) end
end

-- Of a byte: EVENT has an entry if it is an end, STEP how far it went out.
-- Counters follow the byte, so they add up at every moment; the last task to end closes the job.
local function count_move(page, job, index, from, to, now)
  local goes_out = STEP[to] and not STEP[from]
  if EVENT[from] then
    if from == 'F' then correct(job, K.job_failed(job), -1) end
    if not goes_out then return end
    correct(job, K.job_sent(job), 1)
    job_event('JOB_CORRECTED', job, now, {from = from, to = to})
    tell('job.corrected', now, 'm', job .. ':' .. index, 'from', from, 'to', to)
    return
  end
  local sent, failed, ended = goes_out and 1 or 0, to == 'F' and 1 or 0, EVENT[to] and 1 or 0
  if not page then return count_in(job, sent, failed, ended, now) end
  page.sent, page.failed, page.ended, page.at = page.sent + sent, page.failed + failed, page.ended + ended, now
end

-- What gathered tasks of a job have to tell, step by step on a message's way: one entry of the stream for all that came as far in the same
-- moment, with their indexes in order (domain/events.py).
local function tell_together(kind, job, at, indexes)
  if #indexes == 1 then return tell(kind, at, 'm', job .. ':' .. indexes[1]) end
  tell(kind, at, 'job', job, 'ix', table.concat(indexes, ','))
end

local function tell_page(job, page)
  for step, groups in ipairs(page.told) do
    local kind = EVENT[string.sub(WENT_OUT, step, step)]
    for _, group in ipairs(groups) do
      table.sort(group.indexes)
      tell_together(kind, job, group.at, group.indexes)
    end
  end
end

local function write_page(job, page)
  if #page.writes > 0 then call('BITFIELD', K.job_states(job), unpack(page.writes)) end
  tell_page(job, page)
  if #page.unrouted > 0 then call('HDEL', K.job_routes(job), unpack(page.unrouted)) end
  count_in(job, page.sent, page.failed, page.ended, page.at)
end

-- All that was gathered, each job on its own. Returns the jobs that could not be written, and why.
local function write_gathered()
  local failed = {}
  closed = {}
  for job, page in pairs(pages) do
    local is_good, problem = pcall(write_page, job, page)
    if not is_good then failed[job] = problem end
  end
  local is_good, problem = pcall(leave_round, closed)
  for _, job in ipairs(is_good and {} or closed) do failed[job] = problem end
  pages, closed = nil, nil
  return failed
end

local function tell_with_others(page, step, index, now)
  local groups = page.told[step]
  local group = groups[#groups]
  if not group or group.at ~= now then
    group = {at = now, indexes = {}}
    groups[#groups + 1] = group
  end
  group.indexes[#group.indexes + 1] = tonumber(index)
end

-- A proof that skips a step tells of that step too: what was read was sent and delivered, and each is told exactly once.
local function tell_move(page, task, index, from, to, now)
  local last = STEP[to]
  if not last then return tell(EVENT[to], now, 'm', task) end
  -- What is corrected is told at once: that it went out comes before that its job was corrected.
  local is_gathered = page and (STEP[from] or not EVENT[from])
  for step = (STEP[from] or 0) + 1, last do
    if is_gathered then tell_with_others(page, step, index, now) else tell(EVENT[string.sub(WENT_OUT, step, step)], now, 'm', task) end
  end
end

-- Moves a task if the table allows it. Returns true and the byte it had, or false and the byte it has. `byte`: it was read in this script.
local function move(task, to, now, byte)
  local job, index = split(task)
  local from = byte or byte_of(task)
  if from == '' or not has(NEXT[from], to) then return false, from end
  local page = page_of(job)
  put_byte(page, job, index, to)
  -- Only an end is told and counted.
  if EVENT[to] then
    tell_move(page, task, index, from, to, now)
    count_move(page, job, index, from, to, now)
  end
  return true, from
end

-- Many tasks of a job in few entries: which ones as spans of their indexes, at most 1,000 spans in each. The reader expands them.
local function tell_many(job, states, bytes, to, now)
  local found = {}
  local function flush()
    if #found > 0 then tell(EVENT[to], now, 'job', job, 'ix', table.concat(found, ',')) end
    found = {}
  end
  for first, past in string.gmatch(states, '()[' .. bytes .. ']+()') do
    found[#found + 1] = past - first == 1 and tostring(first - 1) or string.format('%d-%d', first - 1, past - 2)
    if #found == 1000 then flush() end
  end
  flush()
end

-- Ends all tasks of a job whose byte is among `bytes`, in one go: a hundred thousand single moves would hold up everybody else.
-- What still lies in queues is dropped when it comes to the head; the gates look at the byte.
local function end_all(job, bytes, to, now)
  local before = call('GET', K.job_states(job)) or ''
  local states, count = string.gsub(before, '[' .. bytes .. ']', to)
  if count == 0 then return 0 end
  call('SET', K.job_states(job), states)
  tell_many(job, before, bytes, to, now)
  if to == 'F' then call('INCRBY', K.job_failed(job), count) end
  if call('DECRBY', K.job_open(job), count) == 0 then close_job(job, now) end
  return count
end

-- A message that has ended is kept for a while; until then nothing may free it.
local function retire(task)
  if EVENT[byte_of(task)] then call('EXPIRE', K.message(task), C.message_ttl) end
end

-- A message's history with one line more; the newest 40 are kept.
local function history_with(known, newest)
  if not known then return newest end
  local lines = {}
  for line in string.gmatch(known, '[^\n]+') do lines[#lines + 1] = line end
  lines[#lines + 1] = newest
  return table.concat(lines, '\n', math.max(1, #lines - 39))
end

-- Messages that went out are forgotten together, in so many days (release_due): a TTL for each would be a command for each.
local function forget_after(tasks, now) call('ZADD', K.messages_ended(), ms(now + tonumber(C.message_ttl) * 1000), table.concat(tasks, ' ')) end

local function remember(task, entry)
  local key = K.message(task)
  call('HSET', key, 'history', history_with(call('HGET', key, 'history'), cjson.encode(entry)))
end

-- What is given up, with all that is known about it.
local function dead_letter(task, now, code, message)
  local known = message_of(task)
  call('LPUSH', K.dead_letters(), cjson.encode({
    taskId = task, at = now, code = code, message = message, to = known.to, phone = known.phone,
    sessionId = known.sessionId, attempts = tonumber(known.attempts or '0'), history = known.history,
  }))
  -- The oldest of so many are past helping; what became of them stays in their message and their job.
  call('LTRIM', K.dead_letters(), 0, C.dead_letters - 1)
  incident('MESSAGE_GIVEN_UP', now, {taskId = task, phone = known.phone, sessionId = known.sessionId, code = code})
end

-- Ends one task that is canceled. `canceled` says that it was not sent; of one that may have been, that would be a lie.
local function end_canceled(task, now)
  if call('HGET', K.message(task), 'maybeSent') ~= '1' then
    if move(task, 'X', now) and call('EXISTS', K.message(task)) == 1 then call('HSET', K.message(task), 'endedAt', now) end
  elseif move(task, 'F', now) then
    call('HSET', K.message(task), 'errorCode', 'UNKNOWN_OUTCOME', 'endedAt', now)
    dead_letter(task, now, 'UNKNOWN_OUTCOME', 'it was canceled before anybody could tell')
  end
  retire(task)
end
