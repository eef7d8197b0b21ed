-- Switches SmartGuard on or off for the whole fleet. Kept; the setting counts only until somebody did this.
-- a: enabled, setting (what counts while nothing is kept), by, now
-- Returns OK {changed}.
local known = call('GET', K.smartguard_enabled())
local was = a.setting
if known then was = known == '1' end
call('SET', K.smartguard_enabled(), a.enabled and '1' or '0')
if was ~= a.enabled then
  incident('SMART_GUARD_TOGGLE', a.now, {enabled = a.enabled, by = a.by})
  audit('OPERATOR', a.now, {action = 'toggle_guard', enabled = a.enabled, by = a.by})
end
return reply('OK', {changed = was ~= a.enabled})
