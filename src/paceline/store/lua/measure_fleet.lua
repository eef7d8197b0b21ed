-- One page of the fleet for the metrics, added up here so that ten thousand numbers cost a few answers. Changes nothing.
-- a: offset, limit (phones), now, worst (sessions told of by name), usageSince (older measurements of a worker do not count)
-- Returns OK {phones, queued, parked, restricted {kind: count}, waiting {reason: count}, days? [[phone, createdAt, timezone, capDay, capUsed] …],
--   connections {state: count}, down, overrides {source: count}, workers, memory, memoryMax, sent, failed, worst? [[session, sent, failed] …]}.
local out = {
  queued = 0, parked = 0, down = 0, workers = 0, memory = 0, memoryMax = 0, sent = 0, failed = 0,
}
local restricted, waiting, connections, overrides, days, failing = {}, {}, {}, {}, {}, {}

local function add(counts, name) counts[name] = (counts[name] or 0) + 1 end

-- Of several the one that stops most, as policy.restriction.standing has it.
local function standing(about)
  if about[1] == '1' then return 'QUARANTINED' end
  if tonumber(about[2] or '0') > a.now then return 'COOLDOWN' end
  if about[3] and about[3] ~= '' and tonumber(about[4] or '0') > a.now then return about[3] end
  return 'NONE'
end

local function waits_for(pace, kind, queued)
  if kind == 'QUARANTINED' then return kind end
  if queued == 0 then return 'PARKED' end
  if filled(pace.unsettled) then return 'UNSETTLED' end
  return filled(pace.waitReason) or 'IN_TURN'
end

local function look_at_session(phone, id)
  local known = call('HMGET', K.session(id), 'connection', 'downTold', 'memoryBytes', 'usageAt')
  add(connections, known[1] or 'STOPPED')
  if known[2] == '1' then out.down = out.down + 1 end
  if known[3] and tonumber(known[4] or '0') >= a.usageSince then
    local memory = tonumber(known[3])
    out.workers, out.memory, out.memoryMax = out.workers + 1, out.memory + memory, math.max(out.memoryMax, memory)
  end
  if call('EXISTS', K.session_rpm(id)) == 1 then add(overrides, call('GET', K.session_rpm_source(id)) or 'manual') end
  local sent, _, failed = last_minute(phone, id, a.now)
  out.sent, out.failed = out.sent + sent, out.failed + failed
  if failed > 0 then failing[#failing + 1] = {id, sent, failed} end
end

local phones = call('ZRANGE', K.phones(), a.offset, a.offset + a.limit - 1)
for _, phone in ipairs(phones) do
  local queued, parked = ahead(phone, 1), call('ZCARD', K.parked(phone))
  local pace = seen_pace(phone)
  local about = call('HMGET', K.phone(phone), 'quarantined', 'cooldownUntil', 'restriction', 'restrictedUntil', 'createdAt', 'timezone')
  local kind = standing(about)
  add(restricted, kind)
  if queued + parked > 0 then add(waiting, waits_for(pace, kind, queued)) end
  out.queued, out.parked = out.queued + queued, out.parked + parked
  days[#days + 1] = {phone, tonumber(about[5] or '0'), about[6] or '', pace.capDay, tonumber(filled(pace.capUsed) or '0')}
  for _, id in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do look_at_session(phone, id) end
end

table.sort(failing, function(x, y) return x[3] > y[3] or (x[3] == y[3] and x[1] < y[1]) end)
local worst = {}
for place = 1, math.min(a.worst, #failing) do worst[place] = failing[place] end
out.phones, out.restricted, out.waiting, out.days = #phones, restricted, waiting, list(days)
out.connections, out.overrides, out.worst = connections, overrides, list(worst)
return reply('OK', out)
