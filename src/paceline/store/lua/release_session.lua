-- The worker of a session is gone for good (stopped, removed, failed): its places on phone and proxy are free again, once.
-- a: session, instance?, generation?, reason?, now. With an instance or a generation only if it is still that one: the word about an
-- old worker must not take the places of the next.
-- Returns OK {released} | STALE | UNKNOWN_SESSION.
local known = hash(K.session(a.session))
if not known.phone then return reply('UNKNOWN_SESSION') end
if a.instance and known.wantedInstance ~= a.instance then return reply('STALE') end
if a.generation and tonumber(known.generation or '1') ~= a.generation then return reply('STALE') end
return reply('OK', {released = let_go(a.session, known, a.now, a.reason or 'STOPPED')})
