-- Outboxes: what a worker holds.

-- A task in a worker's hands, as the worker and the settling code need it.
local function held_task(task)
  local known = call('HMGET', K.message(task), 'token', 'to', 'epoch')
  return {task = task, token = tonumber(known[1] or '0'), to = known[2] or '', epoch = tonumber(known[3] or '0'), state = byte_of(task)}
end

local function is_newest(session, epoch) return tonumber(call('HGET', K.session(session), 'epoch') or '-1') == epoch end

-- Takes a task out of its session's outbox, whichever half it is in. The first write of every settling: it only frees memory,
-- so settling still works when Redis is full.
local function take_out(task, session, is_handing)
  call('ZREM', K.deadlines(), task)
  if is_handing and call('ZREM', K.handing(), task) == 1 then call('HDEL', K.message(task), 'handing') end
  if session then
    call('LREM', K.processing(session), 0, task)
    call('LREM', K.outbox(session), 0, task)
  end
end

-- Frees the phone of this task, if it is the one it is busy with. `about` is the message. `is_proof`: it certainly went out.
local function free_phone(phone, task, about, now, on_wire, is_proof)
  local pacer = K.pacer(phone)
  local unsettled, sends, gap_ms = unpack(call('HMGET', pacer, 'unsettled', 'sends', 'gapMs'))
  if unsettled ~= task then
    if is_proof then call('HSET', pacer, 'lastSent', now) end
    return
  end
  settle_fleet(task, about.fleetMember, now, on_wire)
  local fields = {'unsettled', ''}
  if on_wire then
    local from = math.min(now, math.max(tonumber(about.claimedAt or '0'), tonumber(about.sendAfter or '0')))
    sends = with_send(sends or '', from, now)
    fields = {'sends', sends, 'unsettled', ''}
    if is_proof then fields = {'sends', sends, 'unsettled', '', 'lastSent', now} end
  end
  score_again(phone, now, sends, gap_ms, fields)
end
