-- Outboxes: what a worker holds.

-- A task in a worker's hands, as the worker and the settling code need it.
local function held_task(task)
  local known = call('HMGET', K.message(task), 'token', 'to', 'epoch')
  return {task = task, token = tonumber(known[1] or '0'), to = known[2] or '', epoch = tonumber(known[3] or '0'), state = byte_of(task)}
end

local function is_newest(session, epoch) return tonumber(call('HGET', K.session(session), 'epoch') or '-1') == epoch end

-- Takes a task out of an outbox, which holds tasks as they lay in their queue (a worker's hands hold their ids). `entry`: its text there, unless its person was erased since. False if it is not there.
local function unhand(task, session, entry)
  local key = K.outbox(session)
  if entry and call('LREM', key, '0', entry) > 0 then return true end
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
  if call('LREM', K.processing(session), '0', task) == 0 and byte ~= 'h' then unhand(task, session, about.entry) end
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

-- Frees the phone of this task, if it is the one it is busy with. `about` is the message. `is_proof`: it certainly went out.
local function free_phone(phone, task, about, now, on_wire, is_proof)
  local p, session = pace_of(phone), about.sessionId
  if p.unsettled ~= task then
    if not is_proof then return end
    p.lastSent = ms(now)
    return put_pace(phone, p)
  end
  settle_fleet(task, about.fleetMember, now, on_wire)
  local from = math.min(now, math.max(tonumber(about.claimedAt or '0'), tonumber(about.sendAfter or '0')))
  local sends = on_wire and with_send(sends_of(phone), from, now, is_proof)
  p.unsettled, p.holder, p.slot = '', '', ''
  if sends then
    keep_sends(phone, sends)
    p.sentBy = sent_by(p.sentBy, session, #sends / SEND)
  end
  local mark = is_proof and session .. whole(math.floor(now / 30000))
  local is_untold = mark and p.told ~= mark
  if is_proof then p.lastSent, p.told = ms(now), mark end
  score_again(phone, now, p, filled(p.more))
  -- The phone is free by now: whatever becomes of a statistic must not hold it up.
  if is_untold then pcall(tell_minute, phone, session, proven_since(sends, p.sentBy, session, now), now) end
end
