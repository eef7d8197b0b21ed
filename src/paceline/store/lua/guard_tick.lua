-- SmartGuard's tick, taken by one dispatcher however many ask.
-- a: now, tick (ms), setting (whether it is on while nobody said so)
-- Returns OK {nextAt} (the tick is yours) | WAIT {nextAt} | OFF | STOPPED.
if call('HGET', K.fleet(), 'stopped') == '1' then return reply('STOPPED') end
local known = call('GET', K.smartguard_enabled())
if known == '0' or (not known and not a.setting) then return reply('OFF') end
local next_at = tonumber(call('GET', K.smartguard_tick()) or '0') + a.tick
-- A tick in the future is of a clock that was wrong; waiting for it could take for ever.
if a.now < next_at and next_at <= a.now + a.tick then return reply('WAIT', {nextAt = next_at}) end
call('SET', K.smartguard_tick(), a.now)
return reply('OK', {nextAt = a.now + a.tick})
