-- The hand-overs and leases whose time is over, for the sweeper to decide on. Changes nothing.
-- a: now, limit
-- Returns OK {tasks? [{task, state, onUnknown facts …}], nextAt?}.
local found = {}
for _, task in ipairs(call('ZRANGEBYSCORE', K.deadlines(), '-inf', a.now, 'LIMIT', 0, a.limit)) do
  local known = call('HMGET', K.message(task), 'sessionId', 'phone')
  found[#found + 1] = {task = task, state = byte_of(task), session = known[1] or nil, phone = known[2] or nil}
end
local first = call('ZRANGE', K.deadlines(), 0, 0, 'WITHSCORES')
return reply('OK', {tasks = list(found), nextAt = tonumber(first[2])})
