-- Pauses or resumes all sending: the breaker by hand. Resuming also clears one that tripped.
-- a: paused, by, now
-- Returns OK {changed, stopped, paused, reason?, since?}. Pausing what is paused keeps the first reason and time.
local fleet = K.fleet()
local was = call('HGET', fleet, 'paused') == '1'
if a.paused and not was then
  call('HSET', fleet, 'paused', 1, 'pausedReason', 'OPERATOR', 'pausedAt', a.now)
  incident('FLEET_PAUSED', a.now, {by = a.by, reason = 'OPERATOR'})
  audit('OPERATOR', a.now, {action = 'pause_fleet', by = a.by})
elseif was and not a.paused then
  incident('FLEET_RESUMED', a.now, {by = a.by, reason = call('HGET', fleet, 'pausedReason') or 'OPERATOR'})
  audit('OPERATOR', a.now, {action = 'resume_fleet', by = a.by, reason = call('HGET', fleet, 'pausedReason') or 'OPERATOR'})
  call('HDEL', fleet, 'paused', 'pausedReason', 'pausedAt')
end
-- Whoever resumes has seen what was restricted; the next single one must not trip the breaker again.
if not a.paused then call('DEL', K.restricted_phones()) end
return fleet_reply(was ~= a.paused)
