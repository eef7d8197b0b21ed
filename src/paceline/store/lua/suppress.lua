-- Puts people on the list of those nobody writes to, or takes one off it.
-- a: add? [{to, also? [other notations], info (JSON)}] | remove? [every notation of one number], by, now
-- Returns OK {changed (people)}.
local changed = 0
for _, item in ipairs(a.add or {}) do
  if put_on_list(item.to, item.also, item.info) then changed = changed + 1 end
end
for _, to in ipairs(a.remove or {}) do
  if call('ZREM', K.suppressions(), to) == 1 then changed = 1 end
  call('HDEL', K.suppression_info(), to)
end
-- Who it was about has no place in the trail.
if changed > 0 then audit('OPERATOR', a.now, {action = a.add and 'suppress' or 'unsuppress', people = changed, by = a.by}) end
return reply('OK', {changed = changed})
