-- Keeps what an operator set for the pacing of a session's phone, or forgets it.
-- a: session, set {minDelayMs?, maxDelayMs?, burstLimit?, burstCooldownMs?, rpm?}, remove [field …], by, now
-- Returns OK {phone, changed} | UNKNOWN_SESSION | INVERTED {minDelayMs, maxDelayMs} (with what is kept, the shortest delay would be the longer).
local phone = phone_of(a.session)
if not phone then return reply('UNKNOWN_SESSION') end
local key, fields = K.phone(phone), {'minDelayMs', 'maxDelayMs', 'burstLimit', 'burstCooldownMs', 'rpm'}

local before, after = {}, {}
for i, value in ipairs(call('HMGET', key, unpack(fields))) do
  if value then before[fields[i]], after[fields[i]] = tonumber(value), tonumber(value) end
end
for _, field in ipairs(a.remove) do after[field] = nil end
for field, value in pairs(a.set) do after[field] = value end
if after.minDelayMs and after.maxDelayMs and after.minDelayMs > after.maxDelayMs then
  return reply('INVERTED', {minDelayMs = after.minDelayMs, maxDelayMs = after.maxDelayMs})
end

local changed = false
for field, value in pairs(after) do
  if before[field] ~= value then
    call('HSET', key, field, value)
    changed = true
  end
end
for field in pairs(before) do
  if after[field] == nil then
    call('HDEL', key, field)
    changed = true
  end
end
if changed then
  incident('PACER_CHANGED', a.now, {phone = phone, sessionId = a.session, by = a.by, from = before, to = after})
  audit('OPERATOR', a.now, {action = 'set_pacer', phone = phone, sessionId = a.session, by = a.by, from = before, to = after})
  rescan(phone, a.now)
end
return reply('OK', {phone = phone, changed = changed})
