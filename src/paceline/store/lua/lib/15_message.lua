-- A message from its hand-over on. What a hand-over writes of it is two texts, since they are written and read with every message: `entry`, the
-- task as it lay in its queue, and `handed`: the number, the session, when it may be sent, when it was handed over, its day, and whose unit it
-- took if that is another day's. What becomes of it later has fields of its own.
local HANDED, ADDRESSEE = '^(%S+) (%S+) (%d+) (%d+) (%S+) ?(%S*)$', '^%["[^"]+","([^"]*)"'

local function handed_text(phone, session, send_after, at, day, unit_day)
  return phone .. ' ' .. session .. ' ' .. send_after .. ' ' .. at .. ' ' .. day .. (unit_day and ' ' .. unit_day or '')
end

-- Its fields with what these two say. What stands there by itself is newer: one that was parked since has its number in a field.
local function told_apart(about)
  local phone, session, send_after, at, day, unit_day = string.match(about.handed or '', HANDED)
  about.phone, about.sessionId, about.handedOffAt, about.sendAfter, about.day = about.phone or phone, session, at, send_after, day
  about.unitDay = unit_day and unit_day ~= '' and unit_day or day
  about.to = about.to or string.match(about.entry or '', ADDRESSEE)
  return about
end

local function message_of(task) return told_apart(hash(K.message(task))) end
