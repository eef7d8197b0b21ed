-- A worker that was begun runs no more. Writes down how it ended and when the next may start, or gives the session up. Who decided that did
-- not know of an operator's wish of a moment ago: that one counts.
-- a: session, instance, exitCode?, reason, starts, notBefore, now; or failed (true): no further start until an operator asks
-- Returns OK | AGAIN (this end was written down before) | STALE (another worker is the wanted one) | UNKNOWN_SESSION.
local key = K.session(a.session)
local known = hash(key)
if not known.phone then return reply('UNKNOWN_SESSION') end
if (known.wantedInstance or '') ~= a.instance then return reply('STALE') end
if known.endedInstance == a.instance then return reply('AGAIN') end
call('HSET', key, 'endedInstance', a.instance, 'endedAt', a.now, 'lastExit', a.reason .. (a.exitCode and (' ' .. a.exitCode) or ''))
local is_another_asked = known.generation ~= known.startedGeneration and (known.restartReason or 'OPERATOR') == 'OPERATOR'
local is_decided = is_another_asked or known.desired ~= 'running' or known.removing == '1'
if a.failed and not is_decided then
  -- Its return is news then.
  call('HSET', key, 'failedReason', a.reason, 'troubleTold', 1)
  put_state(a.session, 'FAILED', nil, 0, a.now)
  incident('SESSION_FAILED', a.now, {sessionId = a.session, phone = known.phone, reason = a.reason, exitCode = a.exitCode})
  rescan(known.phone, a.now)
  return reply('OK')
end
if not is_decided then call('HSET', key, 'starts', a.starts, 'notBefore', a.notBefore) end
-- What it said last (CONNECTED, most often) is not so any more; what an operator or the platform decided stays.
if known.connection == 'CONNECTED' or known.connection == 'RECONNECTING' or known.connection == 'SCAN_QR' then
  put_state(a.session, 'STARTING', nil, 0, a.now)
end
return reply('OK')
