-- What an operator sees of some phones: their facts, the lengths of their queues, and what was written down about why they wait. Changes nothing.
-- a: phones [digits …]
-- Returns OK {phones? [{row, queued [p1, p2, p3], parked, waitReason?, waitUntil?, parkedReason?, parkedUntil?}]}; those that are
-- not registered are left out.
local function look(phone)
  local queued, wait = {}, seen_pace(phone)
  for priority = 1, 3 do queued[priority] = call('LLEN', queue_key(phone, priority)) end
  local seen = {
    row = phone_row(phone), queued = queued, parked = call('ZCARD', K.parked(phone)),
    waitReason = filled(wait.waitReason), waitUntil = filled(wait.waitReason) and tonumber(wait.waitUntil),
  }
  local first = call('ZRANGE', K.parked(phone), 0, 0, 'WITHSCORES')
  if first[1] then
    seen.parkedReason = call('HGET', K.message(item_of(first[1]).task), 'waitReason') or nil
    seen.parkedUntil = tonumber(first[2])
  end
  return seen
end

local found = {}
for _, phone in ipairs(a.phones) do
  if call('ZSCORE', K.phones(), phone) then found[#found + 1] = look(phone) end
end
return reply('OK', {phones = list(found)})
