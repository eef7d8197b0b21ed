-- A message from its hand-over on. What a hand-over writes of it is two texts, since they are written and read with every message: `entry`, the
-- task as it lay in its queue, and `handed`: the number, the session, when it may be sent, when it was handed over, its day, and whose unit it
-- took if that is another day's. What becomes of it later has fields of its own.
local HANDED, ADDRESSEE = '^(%S+) (%S+) (%d+) (%d+) (%S+) ?(%S*)$', '^%["[^"]+","([^"]*)"'

local function handed_text(phone, session, send_after, at, day, unit_day)
  return phone .. ' ' .. session .. ' ' .. send_after .. ' ' .. at .. ' ' .. day .. (unit_day and ' ' .. unit_day or '')
end

-- Its fields with what these two say. One that was parked before it was ever handed over has its number and its person in fields.
local function told_apart(about)
  local phone, session, send_after, at, day, unit_day = string.match(about.handed or '', HANDED)
  about.phone, about.sessionId, about.handedOffAt, about.sendAfter, about.day = phone or about.phone, session, at, send_after, day
  about.unitDay = unit_day and unit_day ~= '' and unit_day or day
  about.to = string.match(about.entry or '', ADDRESSEE) or about.to
  return about
end

local function message_of(task) return told_apart(hash(K.message(task))) end
