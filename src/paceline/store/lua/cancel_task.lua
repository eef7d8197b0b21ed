-- Cancels one message that waits for a phone, and takes it out of wherever it lies.
-- a: task, phone? (whose queue the caller means; absent for one that has no phone yet: the router skips it then), now
-- Returns OK {state} | UNKNOWN (no such task, or not of this phone) | CLAIMED {state} (a worker holds it) | ENDED {state}.
-- What was handed over is cleared at the next claim, as after cancel_job. One that may have gone out before ends `F`, not `X`.
local job, index = split(a.task)
local byte = job and byte_of(a.task) or ''
local accepted = byte ~= '' and call('GET', K.job(job))
if not accepted then return reply('UNKNOWN') end
accepted = cjson.decode(accepted)
local key = K.message(a.task)
local about = message_of(a.task)
local phone = call('HGET', K.job_routes(job), index) or about.phone or accepted.phone
local ended = has(TERMINAL, byte)
-- What ended before a number was chosen belongs to none, and has ended for whoever asks.
if phone ~= a.phone and (phone or not ended) then return reply('UNKNOWN') end
if ended then return reply('ENDED', {state = byte}) end
if has('cu', byte) then return reply('CLAIMED', {state = byte}) end

local named = '"' .. a.task .. '"'
local function entry_among(entries)
  for _, entry in ipairs(entries) do
    if string.find(entry, named, 1, true) then return entry end
  end
end

local function out_of_queue()
  local list_key = queue_key(phone, accepted.priority or 1)
  local entry = entry_among(call('LRANGE', list_key, 0, -1))
  if entry then call('LREM', list_key, 1, entry) end
end

local TAKE_OUT = {r = out_of_queue}
function TAKE_OUT.s()
  -- All that waits for the same millisecond is read, up to a limit: release_due drops what is left here.
  local member = entry_among(call('ZRANGEBYSCORE', K.scheduled(), accepted.sendAt, accepted.sendAt, 'LIMIT', 0, 5000))
  if member then call('ZREM', K.scheduled(), member) end
end
function TAKE_OUT.p()
  local entry = entry_among(call('ZRANGE', K.parked(phone), 0, -1))
  if entry then call('ZREM', K.parked(phone), entry) end
end
function TAKE_OUT.t()
  if about.retryMember then call('ZREM', K.task_retry(), about.retryMember) else out_of_queue() end
end

if TAKE_OUT[byte] then TAKE_OUT[byte]() end
if phone then
  call('HDEL', K.job_routes(job), index)
  call('SREM', K.singles(phone), a.task)
  call('HSET', key, 'phone', phone)
end
call('HDEL', key, 'waitReason', 'waitUntil', 'retryMember')
-- So that whoever asks again learns what became of it.
call('HSET', key, 'endedAt', a.now)
end_canceled(a.task, a.now)
return reply('OK', {state = byte_of(a.task)})
