-- Takes due phones under a short lease and returns their facts.
-- a: now, lease (ms), limit (phones), heads (tasks looked at per phone)
-- Returns OK {phones [facts …]?, nextAt?} | STOPPED. The version names this look: hand_off refuses if anybody looked later.

-- A task ends visibly when its validity does, also deep in the queue of a phone that cannot send. The earliest end is known,
-- so the whole queue is read only when something in it has really ended.
local function add_expired(phone, heads)
  local known = tonumber(call('HGET', K.pacer(phone), 'minExpiry') or nil)
  if not known or known > a.now then return end
  local seen, earliest, ended = {}, nil, false
  for _, item in ipairs(heads) do seen[item.task] = true end
  for priority = 1, 3 do
    for _, entry in ipairs(call('LRANGE', queue_key(phone, priority), 0, -1)) do
      local item = cjson.decode(entry)
      if item.expiresAt > a.now then
        earliest = math.min(item.expiresAt, earliest or item.expiresAt)
      else
        ended = true
        if not seen[item.task] then heads[#heads + 1] = head_of(phone, entry, a.now) end
      end
    end
  end
  -- Whoever looks may die before ending them, so the next look has to find them again.
  if ended then return end
  if earliest then call('HSET', K.pacer(phone), 'minExpiry', earliest) else call('HDEL', K.pacer(phone), 'minExpiry') end
end

-- An operator stopped the dispatchers; `/start` wakes them.
if call('HGET', K.fleet(), 'stopped') == '1' then return reply('STOPPED') end
local found, returned = {}, 0
local due = call('ZRANGEBYSCORE', K.due(), '-inf', a.now, 'WITHSCORES', 'LIMIT', 0, a.limit)
for at = 1, #due, 2 do
  local phone = due[at]
  call('ZADD', K.due(), a.now + a.lease, phone)
  call('HINCRBY', K.pacer(phone), 'version', 1)
  returned = returned + unpark(phone, a.now)
  local facts = phone_facts(phone)
  local heads = heads_of(phone, a.heads, a.now)
  add_expired(phone, heads)
  facts.dueAt = tonumber(due[at + 1])
  facts.heads, facts.more, facts.globalFreeAt = list(heads), ahead(phone, 1) > #heads, fleet_free_at(phone, a.now)
  found[#found + 1] = facts
  -- Many phones open at the same hour, each with its sleepers; the rest has its look in the next call.
  if returned > 500 then break end
end
local first = call('ZRANGE', K.due(), 0, 0, 'WITHSCORES')
return reply('OK', {phones = list(found), nextAt = tonumber(first[2])})
