-- Stops or starts routing, pacing, retries and SmartGuard of all dispatchers. Kept, so a restart changes nothing.
-- a: stopped, by, now
-- Returns OK {changed, stopped, paused, reason?, since?}. Repeating it changes nothing and writes no second incident.
local was = call('HGET', K.fleet(), 'stopped') == '1'
if was ~= a.stopped then
  if a.stopped then call('HSET', K.fleet(), 'stopped', 1) else call('HDEL', K.fleet(), 'stopped') end
  incident(a.stopped and 'FLEET_STOPPED' or 'FLEET_STARTED', a.now, {by = a.by})
  audit('OPERATOR', a.now, {action = a.stopped and 'stop_fleet' or 'start_fleet', by = a.by})
end
if not a.stopped then
  wake('jobs')
  wake('due')
end
return fleet_reply(was ~= a.stopped)
