-- People: who must not be written to, and who is forgotten.

-- What stands where a person's number stood. No digits: nothing can be sent to it, and it is nobody's.
local ERASED = 'erased'

-- A text without these numbers; nil if none of them was in it. Only a number as a whole: others may begin or end like it.
local function without(text, numbers)
  local found = 0
  for _, digits in ipairs(numbers) do
    local count
    text, count = string.gsub(text, '%f[%d]' .. digits .. '%f[%D]', ERASED)
    found = found + count
  end
  if found > 0 then return text end
end

-- Nothing goes to a person on the list but the confirmation of their own "stop". The list itself names that one task: no mark on a job
-- or a message can let anything else through, and taking the person off the list and putting them back withdraws it.
local listed = {}
local function is_suppressed(to, task)
  local is_listed = listed[to]
  if is_listed == nil then is_listed = call('ZSCORE', K.suppressions(), to) end
  if not is_listed then return false end
  local info = call('HGET', K.suppression_info(), to)
  return not info or cjson.decode(info).confirmation ~= task
end

-- For a script that asks about many: one question to Redis for all of them.
local function look_up_listed(people)
  if #people == 0 then return end
  local scores = call('ZMSCORE', K.suppressions(), unpack(people))
  for i, to in ipairs(people) do listed[to] = scores[i] and true or false end
end

-- All notations of a number stand on the list; what is known about the person, at the one that was given. True if they are new.
local function put_on_list(to, also, info)
  local is_new = call('ZADD', K.suppressions(), 'NX', 0, to) == 1
  if is_new then call('HSET', K.suppression_info(), to, info) end
  for _, other in ipairs(also or {}) do call('ZADD', K.suppressions(), 'NX', 0, other) end
  return is_new
end
