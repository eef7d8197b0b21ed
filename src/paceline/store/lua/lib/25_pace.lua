-- What pacing knows of a phone, in three texts, each in a hash over the whole fleet, so that a verb over many phones reads and writes them at
-- once. Its pace: what hand-over and settling write, with a version that every such change raises. Its past sends, which only settling writes.
-- Marks of its queues, which change beside a decision and do not void it. Pace and marks are lists of texts (JSON, without names; store/rows.py
-- reads them, too).
local PACE = {key = K.pace(), nothing = '["0"' .. string.rep(',""', 13) .. ']', texts = {}, held = {}}
local SENDS = {key = K.sends(), nothing = '', texts = {}, held = {}}
local MARKS = {key = K.marks(), nothing = '["","","","",""]', texts = {}, held = {}}

-- A verb over many phones writes what it changed together, at its end (write_held).
local is_held = false

-- One question for all of them.
local function look_up(book, phones)
  is_held = true
  if #phones == 0 then return end
  for i, text in ipairs(call('HMGET', book.key, unpack(phones))) do book.texts[phones[i]] = text or book.nothing end
end

local function text_of(book, phone)
  local text = book.texts[phone] or call('HGET', book.key, phone) or book.nothing
  book.texts[phone] = text
  return text
end

local function keep_text(book, phone, text)
  book.texts[phone] = text
  if not is_held then return call('HSET', book.key, phone, text) end
  -- Of one that changes again the last text counts.
  local held = book.held
  local count = #held
  held[count + 1], held[count + 2] = phone, text
end

local function write_held()
  for _, book in ipairs({PACE, SENDS, MARKS}) do
    if #book.held > 0 then call('HSET', book.key, unpack(book.held)) end
    book.held = {}
  end
  is_held = false
end

-- Paces that were read, by phone. Whoever changes one must keep it (put_pace); whoever changes its text, forget the other (keep_line).
local paces = {}

-- Every field is a text, empty if there is nothing. `more`: something lay in its queues at the last hand-over. What settling changes comes first.
local function pace_of(phone)
  if paces[phone] then return paces[phone] end
  local p = {}
  p.version, p.lastNow, p.unsettled, p.holder, p.slot, p.waitReason, p.waitUntil, p.lastSent, p.sentBy, p.more, p.gapMs, p.gapKey, p.capDay,
    p.capUsed = unpack(cjson.decode(text_of(PACE, phone)))
  if not p.capUsed then error('what is kept of its pace cannot be read') end
  paces[phone] = p
  return p
end

-- For those who only look at many: one that cannot be read is as one of which nothing is known.
local function seen_pace(phone)
  local is_good, p = pcall(pace_of, phone)
  if is_good then return p end
  PACE.texts[phone] = PACE.nothing
  return pace_of(phone)
end

-- Whoever decided by what was there before is too late.
local function put_pace(phone, p)
  p.version = whole(tonumber(p.version) + 1)
  keep_text(PACE, phone, cjson.encode({
    p.version, p.lastNow, p.unsettled, p.holder, p.slot, p.waitReason, p.waitUntil, p.lastSent, p.sentBy, p.more, p.gapMs, p.gapKey, p.capDay,
    p.capUsed,
  }))
end

-- The whole of it as text: what was decided elsewhere, or put together from its parts (free_phone).
local function keep_line(phone, line)
  paces[phone] = nil
  keep_text(PACE, phone, line)
end

local function sends_of(phone) return text_of(SENDS, phone) end

-- Of its queues: the number of the last task that came, whether something urgent may lie there, the earliest end of validity, the first time
-- something parked wants back, when its last attempts failed.
local function marks_of(phone)
  local m = {}
  m.seq, m.urgent, m.minExpiry, m.parkedAt, m.failures = unpack(cjson.decode(text_of(MARKS, phone)))
  if not m.failures then error('what is marked of its queues cannot be read') end
  return m
end

local function put_marks(phone, m) keep_text(MARKS, phone, cjson.encode({m.seq, m.urgent, m.minExpiry, m.parkedAt, m.failures})) end

-- Whether all of it can be read: asked before the first write of what must not be done by half.
local function must_be_readable(phone)
  pace_of(phone)
  marks_of(phone)
end

-- The task a phone is busy with, nil if none.
local function unsettled_of(phone)
  local task = string.match(text_of(PACE, phone), '^%["%d+","%d*","([^"]*)"')
  if not task then error('what is kept of its pace cannot be read') end
  return task ~= '' and task or nil
end
