-- The hand-overs and leases whose time is over, for the sweeper to decide on. Changes nothing.
-- a: now, limit
-- Returns OK {tasks? [{task, state, session?, phone?}], unreadable? [{task, error}], nextAt?}.
-- What is stored about one message may be damaged; the others are told all the same.
local function look(task)
  local known, state = message_of(task), byte_of(task)
  if state == '' then error('there is no such task') end
  return {task = task, state = state, session = known.sessionId, phone = known.phone}
end

local found, unreadable = {}, {}
for _, task in ipairs(call('ZRANGEBYSCORE', K.deadlines(), '-inf', a.now, 'LIMIT', 0, a.limit)) do
  local is_good, answer = pcall(look, task)
  if is_good then found[#found + 1] = answer else unreadable[#unreadable + 1] = {task = task, error = said(answer)} end
end
local first = call('ZRANGE', K.deadlines(), 0, 0, 'WITHSCORES')
return reply('OK', {tasks = list(found), unreadable = list(unreadable), nextAt = tonumber(first[2])})
