-- Forgets whom dead letters were for, a stretch of them at a time. Each keeps its place.
-- a: numbers [every notation of theirs], from? (a place counted from the oldest; absent: the newest), limit
-- Returns OK {count, next? (the place to go on from)}.
local length, count = call('LLEN', K.dead_letters()), 0
local top = math.min(a.from or length, length - 1)
if top < 0 then return reply('OK', {count = 0}) end
local first = length - 1 - top
local found = call('LRANGE', K.dead_letters(), first, first + a.limit - 1)
for i, letter in ipairs(found) do
  local changed = without(letter, a.numbers)
  if changed then
    call('LSET', K.dead_letters(), first + i - 1, changed)
    count = count + 1
  end
end
local next_place = top - #found
return reply('OK', {count = count, next = next_place >= 0 and next_place or nil})
