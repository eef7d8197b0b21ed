-- A page of the fleet: the facts of each phone and the lengths of its queues. Changes nothing.
-- a: offset, limit
-- Returns [phone row, p1, p2, p3, parked, single sends] for each, as a plain reply; [[phone]] for one that cannot be read.
local function look(phone)
  return {phone_row(phone), call('LLEN', K.queue(phone)), call('LLEN', K.queue_p2(phone)), call('LLEN', K.queue_p3(phone)), call('ZCARD', K.parked(phone)),
    call('SCARD', K.singles(phone))}
end

local found = {}
for i, phone in ipairs(call('ZRANGE', K.phones(), a.offset, a.offset + a.limit - 1)) do
  local is_good, row = pcall(look, phone)
  found[i] = is_good and row or {{phone}}
end
return found
