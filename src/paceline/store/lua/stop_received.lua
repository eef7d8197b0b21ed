-- A person wrote a stop word: nobody writes to them from now on, and they are told so once, by the number they wrote to.
-- a: session, stop (names the inbound message), from, also? [other notations], info (JSON; with `confirmation` if there is one), keep (ms), now,
--    confirm? {job, json, task, contact, to, expiresAt, priority}
-- Returns OK {confirmed} | KNOWN (they were on the list already: not a word more) | REPEAT (this message was heard before) | UNKNOWN_SESSION.
-- The place on the list, its one exception and the confirmation are one step, so none can be without the others.
local phone = call('HGET', K.session(a.session), 'phone')
if not phone then return reply('UNKNOWN_SESSION') end
if call('ZADD', K.stops(), 'NX', a.now, a.stop) == 0 then return reply('REPEAT') end
call('ZREMRANGEBYSCORE', K.stops(), '-inf', a.now - a.keep)
if not put_on_list(a.from, a.also, a.info) then return reply('KNOWN') end
local confirm = a.confirm
if not confirm or call('EXISTS', K.job(confirm.job)) == 1 then return reply('OK', {confirmed = false}) end
-- Without the limit of single sends that may wait: these are as many as people who wrote.
confirm.phone, confirm.now = phone, a.now
accept_single(confirm)
return reply('OK', {confirmed = true})
