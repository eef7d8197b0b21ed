-- Outboxes: what a worker holds.

-- A task in a worker's hands, as the worker and the settling code need it.
local function held_task(task)
  local known = call('HMGET', K.message(task), 'token', 'to', 'epoch')
  return {task = task, token = tonumber(known[1] or '0'), to = known[2] or '', epoch = tonumber(known[3] or '0'), state = byte_of(task)}
end

local function is_newest(session, epoch) return tonumber(call('HGET', K.session(session), 'epoch') or '-1') == epoch end

-- Takes a task out of its session's outbox, whichever half it is in; `byte` tells where to look first.
local function take_from_outbox(task, session, is_handing, byte)
  if is_handing and call('ZREM', K.handing(), task) == 1 then call('HDEL', K.message(task), 'handing') end
  if not session then return end
  local first, second = K.processing(session), K.outbox(session)
  if byte == 'h' then first, second = second, first end
  -- It is in one of them, at most.
  if call('LREM', first, '0', task) == 0 then call('LREM', second, '0', task) end
end

-- The first write of every settling: it only frees memory, so settling still works when Redis is full.
local function take_out(task, session, is_handing, byte)
  call('ZREM', K.deadlines(), task)
  take_from_outbox(task, session, is_handing, byte)
end

-- Frees the phone of this task, if it is the one it is busy with. `about` is the message. `is_proof`: it certainly went out; then the mark of
-- the last order in its statistics is returned (count_minute), since a new one is noted here.
local function free_phone(phone, task, about, now, on_wire, is_proof)
  local pacer = K.pacer(phone)
  local unsettled, sends, gap_ms, tidied = unpack(call('HMGET', pacer, 'unsettled', 'sends', 'gapMs', 'sentTidy'))
  if unsettled ~= task then
    if is_proof then call('HSET', pacer, 'lastSent', ms(now)) end
    return nil
  end
  settle_fleet(task, about.fleetMember, now, on_wire)
  local fields = {'unsettled', ''}
  if on_wire then
    local from = math.min(now, math.max(tonumber(about.claimedAt or '0'), tonumber(about.sendAfter or '0')))
    sends = with_send(sends or '', from, now)
    fields = {'sends', sends, 'unsettled', ''}
    if is_proof then fields = {'sends', sends, 'unsettled', '', 'lastSent', ms(now), 'sentTidy', tidy_mark(about.sessionId, now)} end
  end
  score_again(phone, now, sends, gap_ms, fields)
  return tidied
end
