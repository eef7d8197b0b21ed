-- What pacing knows of a phone, in one text of two lines (store/rows.py reads it, too): what hand-over and settling write, with a version that
-- every such change raises; marks of its queues; both as lists of texts (JSON, without names). Its past sends, which only settling writes, are
-- a text of their own. All phones are in one hash of each kind, so a verb over many reads and writes them at once.
local NO_PACE = '["0"' .. string.rep(',""', 15) .. ']\n[""' .. string.rep(',""', 4) .. ']'

-- Texts as they are stored and tables of them, by phone; `held` are the phones that are written together at the end of a verb over many.
local pace_texts, paces, held = {}, {}, nil
local sends_texts, held_sends = {}, {}

-- For a verb over many phones: one question for all of them.
local function look_up_paces(phones)
  held = {}
  if #phones == 0 then return end
  for i, text in ipairs(call('HMGET', K.pace(), unpack(phones))) do pace_texts[phones[i]] = text or NO_PACE end
end

local function pace_text(phone)
  local text = pace_texts[phone] or call('HGET', K.pace(), phone) or NO_PACE
  pace_texts[phone] = text
  return text
end

-- Every field is a text, empty if there is nothing. `more`: something lay in its queues at the last hand-over. `told` and `day` are of statistics.
local function pace_of(phone)
  if paces[phone] then return paces[phone] end
  local text, p = pace_text(phone), {}
  local one = string.find(text, '\n', 1, true) or 0
  p.version, p.lastNow, p.unsettled, p.holder, p.slot, p.more, p.gapMs, p.gapKey, p.capDay, p.capUsed, p.waitReason, p.waitUntil, p.lastSent,
    p.sentBy, p.told, p.day = unpack(cjson.decode(string.sub(text, 1, one - 1)))
  if not p.day then error('what is kept of its pace cannot be read') end
  p.marks = string.sub(text, one + 1)
  paces[phone] = p
  return p
end

-- For those who only look at many: one that cannot be read is as one of which nothing is known.
local function seen_pace(phone)
  local is_good, p = pcall(pace_of, phone)
  if is_good then return p end
  pace_texts[phone] = NO_PACE
  return pace_of(phone)
end

local function keep_text(phone, text)
  pace_texts[phone] = text
  if held then held[phone] = true else call('HSET', K.pace(), phone, text) end
end

local function keep_pace(phone, p)
  keep_text(phone, cjson.encode({
    p.version, p.lastNow, p.unsettled, p.holder, p.slot, p.more, p.gapMs, p.gapKey, p.capDay, p.capUsed, p.waitReason, p.waitUntil, p.lastSent,
    p.sentBy, p.told, p.day,
  }) .. '\n' .. p.marks)
end

-- Whoever decided by what was there before is too late.
local function put_pace(phone, p)
  p.version = whole(tonumber(p.version) + 1)
  keep_pace(phone, p)
end

-- For a verb over many phones that looks at their past sends, too.
local function look_up_sends(phones)
  if #phones == 0 then return end
  for i, text in ipairs(call('HMGET', K.sends(), unpack(phones))) do sends_texts[phones[i]] = text or '' end
end

local function sends_of(phone)
  sends_texts[phone] = sends_texts[phone] or call('HGET', K.sends(), phone) or ''
  return sends_texts[phone]
end

local function keep_sends(phone, text)
  sends_texts[phone] = text
  if held then held_sends[phone] = true else call('HSET', K.sends(), phone, text) end
end

local function write_paces()
  local written = {}
  for phone in pairs(held) do written[#written + 1], written[#written + 2] = phone, pace_texts[phone] end
  if #written > 0 then call('HSET', K.pace(), unpack(written)) end
  written = {}
  for phone in pairs(held_sends) do written[#written + 1], written[#written + 2] = phone, sends_texts[phone] end
  if #written > 0 then call('HSET', K.sends(), unpack(written)) end
  held, held_sends = nil, {}
end

-- Of its queues: the number of the last task that came, whether something urgent may lie there, the earliest end of validity, the first time
-- something parked wants back, when its last attempts failed. They change beside a decision and do not void it.
local function marks_of(phone)
  local m = {}
  m.seq, m.urgent, m.minExpiry, m.parkedAt, m.failures = unpack(cjson.decode(pace_of(phone).marks))
  if not m.failures then error('what is marked of its queues cannot be read') end
  return m
end

local function put_marks(phone, m)
  local p = pace_of(phone)
  p.marks = cjson.encode({m.seq, m.urgent, m.minExpiry, m.parkedAt, m.failures})
  keep_pace(phone, p)
end

-- The task a phone is busy with, nil if none.
local function unsettled_of(phone)
  local task = pace_of(phone).unsettled
  return task ~= '' and task or nil
end
