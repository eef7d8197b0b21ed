-- Plain steps: many at once that were decided elsewhere, each to be done only if what it was decided on still stands. What commands over all of
-- them need comes as lists made outside, so that in the usual case nothing has to be put together here.

-- Places of those that are not as they were seen: nothing is done about them.
local left, is_left = {}, {}
local function leave(place) left[#left + 1], is_left[place] = place, true end

-- A list with so many words for each, the first of them for this place: the words of those that were done.
local function of_done(list, width, first)
  if #left == 0 then return list end
  local found = {}
  for at = 0, #list / width - 1 do
    if not is_left[first + at] then
      for word = 1, width do found[#found + 1] = list[at * width + word] end
    end
  end
  return found
end
