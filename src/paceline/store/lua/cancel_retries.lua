-- Ends those retries of a phone that lie on one page of queue:retry:session, as part of canceling its queue.
-- a: phone, cursor (of the scan; "0" first), limit, now
-- Returns OK {canceled, failed (may have gone out), cursor ("0": all were seen)}.
local ended = {X = 0, F = 0}
local page = call('ZSCAN', K.task_retry(), a.cursor, 'COUNT', a.limit)
for i = 1, #page[2], 2 do
  local item = cjson.decode(page[2][i])
  if item.phone == a.phone then
    call('ZREM', K.task_retry(), page[2][i])
    local byte = cancel_waiting(a.phone, item.task, a.now)
    if byte then ended[byte] = ended[byte] + 1 end
  end
end
return reply('OK', {canceled = ended.X, failed = ended.F, cursor = page[1]})
