-- A stretch of the dead letters, newest first. Places count from the oldest, so what is given up meanwhile moves none of them.
-- a: from? (a place; absent: the newest), limit, task? (only the letter of this task)
-- Returns OK {letters? [{place, json}], next? (the place to go on from)}. Changes nothing.
local length = call('LLEN', K.dead_letters())
local top = math.min(a.from or length, length - 1)
if top < 0 then return reply('OK') end
local found = call('LRANGE', K.dead_letters(), length - 1 - top, length - 2 - top + a.limit)
local named, letters = a.task and '"taskId":"' .. a.task .. '"', {}
for i, json in ipairs(found) do
  if not named or string.find(json, named, 1, true) then letters[#letters + 1] = {place = top - i + 1, json = json} end
end
local next_place = top - #found
return reply('OK', {letters = list(letters), next = next_place >= 0 and next_place or nil})
