-- Outboxes: what a worker holds.

-- A task in a worker's hands, as the worker and the settling code need it.
local function held_task(task)
  local known = message_of(task)
  return {task = task, token = tonumber(known.token or '0'), to = known.to or '', epoch = tonumber(known.epoch or '0'), state = byte_of(task)}
end

local function is_newest(session, epoch) return tonumber(call('HGET', K.session(session), 'epoch') or '-1') == epoch end

-- Takes something out of a list in which nearly always nothing else is. False if it is not there.
local function take_item(key, item)
  local last = call('RPOP', key)
  if last == item then return true end
  if not last then return false end
  call('RPUSH', key, last)
  return call('LREM', key, '0', item) > 0
end

-- Takes a task out of an outbox, which holds tasks as they lay in their queue (a worker's hands hold their ids). `entry`: its text there, unless its person was erased since. False if it is not there.
local function unhand(task, session, entry)
  local key = K.outbox(session)
  if entry and take_item(key, entry) then return true end
  for _, other in ipairs(call('LRANGE', key, '0', '-1')) do
    if task_of(other) == task then return call('LREM', key, '0', other) > 0 end
  end
  return false
end

-- Takes a task from its session, whichever half it is in; `byte` tells where to look first. `about` is the message.
local function take_from_outbox(task, about, byte)
  if about.handing and call('ZREM', K.handing(), task) == 1 then call('HDEL', K.message(task), 'handing') end
  local session = about.sessionId
  if not session or byte == 'h' and unhand(task, session, about.entry) then return end
  -- It is in one of them, at most.
  if not take_item(K.processing(session), task) and byte ~= 'h' then unhand(task, session, about.entry) end
end

-- The first write of every settling: it only frees memory, so settling still works when Redis is full.
local function take_out(task, about, byte)
  call('ZREM', K.deadlines(), task)
  take_from_outbox(task, about, byte)
end

-- Which session sent what, for its statistics: mostly there is one, and its name is enough. Of several the names stand behind an asterisk, in the
-- order of the last sends. `count`: how many sends there are, with this one.
local function sent_by(known, session, count)
  if known == '' or known == session then return session end
  local names, is_one = {}, true
  if string.sub(known, 1, 1) == '*' then
    for name in string.gmatch(string.sub(known, 2), '[^,]+') do names[#names + 1] = name end
  else
    for place = 1, count - 1 do names[place] = known end
  end
  names[#names + 1] = session
  local first = math.max(1, #names - count + 1)
  for place = first, #names do is_one = is_one and names[place] == session end
  return is_one and session or '*' .. table.concat(names, ',', first)
end

-- A pace in its parts: version, lastNow, the task it is busy with, why it waits and until when, lastSent, sentBy, and where the rest begins; of
-- that `more` and the gap. Taken apart and put together as text: reading and writing all of it takes several times as long.
local LINE = '^%["(%d+)","(%d*)","([^"]*)","[^"]*","%d*",("[^"]*","%d*"),"(%d*)","([^"]*)",()"(1?)","(%d*)"'
-- A session's last minute is told twice in each (tell_minute), not of all numbers in the same moment: since when it was due.
local TOLD_MS, APART_MS = 30000, 300
local function told_since(phone, now) return now - (now + string.sub(phone, -2) * APART_MS) % TOLD_MS end

-- When it was on the wire at the earliest, as text: it was claimed, and its slot had come. Times of thirteen digits are in order as texts, too.
local function began(about, now)
  local slot, claimed = about.sendAfter or '', about.claimedAt or ''
  local from = claimed > slot and claimed or slot
  return from < ms(now) and #from == 13 and from or digits(math.min(now, tonumber(from) or 0))
end

-- Frees the phone of this task, if it is the one it is busy with. `about` is the message. `is_proof`: it certainly went out. Something lay in its
-- queues when they were last looked at (`more`): should that be gone, the next look finds nothing to do.
local function free_phone(phone, task, about, now, on_wire, is_proof)
  local line = text_of(PACE, phone)
  local version, last_now, busy_with, wait, last_sent, by, rest, more, gap_ms = string.match(line, LINE)
  if not version then error('what is kept of its pace cannot be read') end
  if busy_with ~= task then
    if not is_proof then return end
    local p = pace_of(phone)
    p.lastSent = ms(now)
    return put_pace(phone, p)
  end
  settle_fleet(task, about.fleetMember, now, on_wire)
  local session, sends, is_untold = about.sessionId, sends_of(phone), false
  if on_wire then
    sends = with_send(sends, began(about, now), now, is_proof)
    keep_text(SENDS, phone, sends)
    by = sent_by(by, session, #sends / SEND)
  end
  if is_proof then
    is_untold = by ~= session or last_sent < ms(told_since(phone, now))
    last_sent = ms(now)
  end
  local works, slot = more ~= '' or has_work(phone), on_wire and now + (tonumber(gap_ms) or 0) or slot_after(sends, gap_ms, now)
  if works and slot > now then wait = '"PACING","' .. whole(slot) .. '"' end
  keep_line(phone, '["' .. whole(version + 1) .. '","' .. last_now .. '","","","",' .. wait .. ',"' .. last_sent .. '","' .. by .. '",' .. string.sub(line, rest))
  score_next(phone, now, slot, works)
  -- The phone is free by now: whatever becomes of a statistic must not hold it up.
  if is_untold then pcall(tell_minute, phone, session, proven_since(sends, by, session, now), now) end
end
