-- Which worker each session should have, as far as a glance at its row tells: where what runs is just that, `policy.reconcile` has nothing
-- to do, and its row need not be read. With ten thousand sessions that is nearly all of them at every look.
-- a: sessions, elsewhere (drivers of workers that are not ours to run), perProxy
-- Returns OK {expected}: for each session "<generation> <instance>", "-" (no worker, and nothing to do), or "" (look at the row).
local is_elsewhere = {}
for _, driver in ipairs(a.elsewhere) do is_elsewhere[driver] = true end
-- Who waits for a proxy waits on while none has room. Asked once: nothing changes within a script.
local has_room = #call('ZRANGEBYSCORE', K.proxies_load(), '-inf', '(' .. a.perProxy, 'LIMIT', 0, 1) > 0

local function expected(id)
  local row = call('HMGET', K.session(id), 'phone', 'driver', 'desired', 'removing', 'connection', 'authorisation', 'generation', 'restartReason',
    'wantedInstance', 'startedGeneration', 'endedInstance', 'holds', 'waitReason')
  local phone, driver, desired, removing, connection, authorisation = row[1], row[2], row[3], row[4], row[5], row[6]
  local generation, why, instance, begun, ended, holds, waits = row[7] or '1', row[8] or '', row[9], row[10] or '0', row[11], row[12], row[13]
  if not phone or removing == '1' then return '' end
  if is_elsewhere[driver or ''] then return '-' end
  if desired ~= 'running' then return holds == '1' and '' or '-' end
  local is_open = instance and instance ~= '' and instance ~= ended
  if is_open then return connection ~= 'FAILED' and begun == generation and (generation .. ' ' .. instance) or '' end
  if holds == '1' then return '' end
  local is_asked = generation ~= begun and (why == '' or why == 'OPERATOR')
  local is_over = connection == 'FAILED' or authorisation == 'LOGGED_OUT' or authorisation == 'LINK_BLOCKED'
    or call('HGET', K.phone(phone), 'quarantined') == '1'
  if is_over and not is_asked then return '-' end
  return waits == 'NO_PROXY' and not has_room and '-' or ''
end

local found = {}
for number, id in ipairs(a.sessions) do found[number] = expected(id) end
return reply('OK', {expected = list(found)})
