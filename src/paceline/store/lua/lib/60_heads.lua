-- What the policies read about the tasks at the head of a phone's queue.

local function head_of(phone, entry, now)
  local item = cjson.decode(entry)
  local known = call('HMGET', K.message(item.task), 'pinned', 'maybeSent')
  return {
    entry = entry, task = item.task, to = item.to, tz = item.tz, expiresAt = item.expiresAt,
    state = byte_of(item.task), pinned = known[1] or nil, maybeSent = known[2] == '1',
    suppressed = is_suppressed(item.to, item.task),
    isKnown = knows(phone, item.to), jobPaused = job_is_paused((split(item.task))), frequencyFreeAt = frequency_free_at(item.to, item.task, now),
  }
end

-- The next tasks of the highest priority that has any.
local function heads_of(phone, limit, now)
  for priority = 3, 1, -1 do
    local entries = call('LRANGE', queue_key(phone, priority), -limit, -1)
    if #entries > 0 then
      local heads = {}
      for i = #entries, 1, -1 do heads[#heads + 1] = head_of(phone, entries[i], now) end
      return heads
    end
  end
  return {}
end
