-- Tells a session's worker to do something: pair (by a code), scan (simulated only) or logout.
-- a: session, id, kind, by, now, until (it is worth nothing after)
-- Returns OK {id, until} | AGAIN {id, until} (the same was told and has not ended) | UNKNOWN_SESSION | REMOVING | NOT_RUNNING (no worker
-- is wanted, or it has failed) | LINKED (pair, scan: it is linked already) | NOT_LINKED (logout).
local key = K.session(a.session)
local phone = phone_of(a.session)
if not phone then return reply('UNKNOWN_SESSION') end
local known = hash(key)
if known.removing == '1' then return reply('REMOVING') end
if known.desired ~= 'running' or known.connection == 'FAILED' then return reply('NOT_RUNNING') end
local is_linked = known.authorisation == 'LINKED'
if a.kind == 'logout' and not is_linked then return reply('NOT_LINKED') end
if a.kind ~= 'logout' and is_linked then return reply('LINKED') end
local commands = K.session_commands(a.session)
local raw = call('HGET', commands, a.kind)
local open = raw and cjson.decode(raw)
if open and open['until'] > a.now then return reply('AGAIN', {id = open.id, ['until'] = open['until']}) end
call('HSET', commands, a.kind, cjson.encode({id = a.id, kind = a.kind, at = a.now, ['until'] = a['until']}))
-- A code of an earlier try would be taken for the answer to this one.
if a.kind == 'pair' then call('DEL', K.session_pairing(a.session)) end
wake('outbox:' .. a.session)
audit('OPERATOR', a.now, {action = a.kind, sessionId = a.session, phone = phone, by = a.by, command = a.id})
return reply('OK', {id = a.id, ['until'] = a['until']})
