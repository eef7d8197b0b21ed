-- An operator's rpm override for a session's phone, at all its sessions; without an rpm it is removed, SmartGuard's too.
-- a: session, rpm?, exceedsTrust, by, now
-- Returns OK {phone, changed} | UNKNOWN_SESSION.
local phone = phone_of(a.session)
if not phone then return reply('UNKNOWN_SESSION') end
local changed, was = false, override_of(phone)
for _, id in ipairs(call('SMEMBERS', K.phone_sessions(phone))) do
  local known = call('HMGET', K.session(id), 'rpm', 'rpmSource')
  local same = tonumber(known[1] or nil) == a.rpm and (not a.rpm or known[2] == 'manual')
  changed = changed or not same
end
if changed then
  override_rpm(phone, a.rpm, 'manual', a.now)
  incident('RPM_OVERRIDE', a.now, {
    phone = phone, sessionId = a.session, from = was or cjson.null, to = a.rpm or cjson.null, by = a.by, exceedsTrust = a.exceedsTrust,
  })
  audit('OPERATOR', a.now, {action = 'set_rpm', phone = phone, sessionId = a.session, from = was, to = a.rpm, by = a.by})
  -- Also when it got slower: a look under way decided on the pace that was.
  rescan(phone, a.now)
end
return reply('OK', {phone = phone, changed = changed})
