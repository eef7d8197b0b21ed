-- Puts people on the list of those nobody writes to, or takes one off it.
-- a: add? [{to, info (JSON)}] | remove? (digits)
-- Returns OK {changed}.
local changed = 0
for _, item in ipairs(a.add or {}) do
  if call('ZADD', K.suppressions(), 'NX', 0, item.to) == 1 then
    call('HSET', K.suppression_info(), item.to, item.info)
    changed = changed + 1
  end
end
if a.remove then
  changed = call('ZREM', K.suppressions(), a.remove)
  call('HDEL', K.suppression_info(), a.remove)
end
return reply('OK', {changed = changed})
