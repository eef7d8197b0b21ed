-- What the policies read about the tasks at the head of a phone's queue, as rows for `store/rows.py`.

-- One state for a whole script: the phones of a batch mostly work for the same few jobs.
local paused_jobs = {}
local function is_paused(job)
  if paused_jobs[job] == nil then paused_jobs[job] = job_is_paused(job) end
  return paused_jobs[job]
end

-- Something about a phone is not as it can be (damaged, or written by another program): it is looked at again in a minute, and the others go on.
local function put_aside(phone, error, now)
  call('ZADD', K.due(), now + 60000, phone)
  leave_line(phone)
  incident('PHONE_UNREADABLE', now, {phone = phone, error = said(error)})
end

-- {entry, state, pinned, maybeSent, suppressed, isKnown, jobPaused, frequencyFreeAt}, and whether it may go as far as is known here.
-- `item` is the entry, if it was decoded before.
local function head_row(phone, entry, now, locked, item)
  item = item or item_of(entry)
  local state = byte_of(item.task)
  -- Only a message that was claimed before can be bound to a session or may have gone out.
  local known = state == 'r' and {false, false} or call('HMGET', K.message(item.task), 'pinned', 'maybeSent')
  local suppressed, is_known = is_suppressed(item.to, item.task), not locked or knows(phone, item.to)
  local waits, free_at = is_paused((split(item.task))), frequency_free_at(item.to, item.task, now)
  local is_clear = state ~= '' and has('rt', state) and not (suppressed or waits or known[1]) and is_known and free_at <= now and item.expiresAt > now
  return {entry, state, known[1], known[2], suppressed and '1', is_known and '1', waits and '1', free_at}, is_clear
end

-- The last entries of a queue as rows, the head first, up to `limit` of them; with `brief` up to the first that may go.
local function rows_of(phone, entries, limit, now, locked, brief)
  local rows, is_clear = {}, false
  for i = #entries, math.max(1, #entries - limit + 1), -1 do
    rows[#rows + 1], is_clear = head_row(phone, entries[i], now, locked)
    if brief and is_clear then break end
  end
  return rows, is_clear
end

-- The queue that is served now, the highest priority that has any task, and its last `count` entries. `is_plain`: nothing urgent lies there, as
-- far as is known, so the others are asked only if this one is empty.
local function served_queue(phone, count, is_plain)
  local first = is_plain and call('LRANGE', K.queue(phone), whole(-count), '-1') or {}
  if #first > 0 then return 1, first end
  for priority = 3, 1, -1 do
    local entries = call('LRANGE', queue_key(phone, priority), whole(-count), '-1')
    if #entries > 0 then return priority, entries end
  end
  return nil, {}
end

-- The next tasks of the queue that is served, and whether more wait behind them.
local function head_rows(phone, limit, now, locked, brief)
  local priority, entries = served_queue(phone, limit + 1)
  local rows = rows_of(phone, entries, limit, now, locked, brief)
  return rows, #entries > #rows or (priority or 1) > 1 and ahead(phone, 1) > #entries
end
