-- Applies one decision of SmartGuard to a phone, if everything it was decided on is still so.
-- a: phone, seen {rpm?, source, changedAt}, rpm? (absent: the override goes), reason, setting (see guard_tick), now
-- Returns OK | STALE (an operator or another ticker was here meanwhile) | OFF (it was switched off meanwhile).
local known = call('GET', K.smartguard_enabled())
if known == '0' or (not known and not a.setting) or call('HGET', K.fleet(), 'stopped') == '1' then return reply('OFF') end
local seen, sessions = a.seen, call('SMEMBERS', K.phone_sessions(a.phone))
local rpm, source = override_of(a.phone)
local changed_at = tonumber(call('HGET', K.phone(a.phone), 'rpmChangedAt') or '0')
if rpm ~= seen.rpm or (source or '') ~= seen.source or changed_at ~= seen.changedAt then return reply('STALE') end
-- An operator's word stands, whatever was decided.
local is_manual = rpm and source ~= 'smartguard' or call('HGET', K.phone(a.phone), 'rpm')
if is_manual or #sessions == 0 then return reply('STALE') end
override_rpm(a.phone, a.rpm, 'smartguard', a.now)
call('SET', K.smartguard_action(), a.now)
table.sort(sessions)
incident('SMART_GUARD_RPM_CHANGE', a.now, {
  phone = a.phone, sessionId = sessions[1], from = seen.rpm or cjson.null, to = a.rpm or cjson.null, reason = a.reason,
})
-- Slower takes hold at the next look anyway; faster is worth one now.
if seen.rpm and (not a.rpm or a.rpm > seen.rpm) then rescan(a.phone, a.now) end
return reply('OK')
