-- A worker instance takes over its session. The newest epoch is the only one that may claim, extend or nack.
-- a: session, instance, journal, life? (names this run of its process), now, anyInstance? (somebody else starts the workers: whoever comes is the one)
-- Returns OK {epoch, phone, pending? [task …], lost? [task …], commands? [{id, kind, until, …}]} | UNKNOWN_SESSION | NOT_WANTED.
-- pending: what an earlier instance held; this one must answer for it from its journal. lost: the same, but claimed under a journal that
-- is gone, so nobody can answer. Repeating it within the same life gives the same epoch. Whatever starts a dead process again may do so under
-- its old instance: another life is another epoch, too, so that what took the one before down is known by it.
local key = K.session(a.session)
local known = hash(key)
if not known.phone then return reply('UNKNOWN_SESSION') end
if a.anyInstance and known.wantedInstance then
  call('HDEL', key, 'wantedInstance')
  known.wantedInstance = nil
end
if known.wantedInstance and known.wantedInstance ~= a.instance then return reply('NOT_WANTED') end
-- One that nobody else begins (runner external) is restarted by going on under a new hello.
if is_unwanted(known, known.wantedInstance and a.instance or '') then return reply('NOT_WANTED') end
local epoch = tonumber(known.epoch or '0')
local life = a.life or ''
if known.instanceId ~= a.instance or (known.lifeId or '') ~= life then
  epoch = epoch + 1
  -- Its host's clock may be behind that of the one before, whose late words are known by their epoch.
  call('HSET', key, 'connectionAt', 0, 'restrictionAt', 0)
end
was_seen(a.session, a.now, 'epoch', epoch, 'instanceId', a.instance, 'lifeId', life, 'journalId', a.journal)
list_sessions(known.phone)
if known.retired == a.instance then call('HDEL', key, 'retired') end
local pending, lost = {}, {}
for _, task in ipairs(call('LRANGE', K.processing(a.session), 0, -1)) do
  local into = call('HGET', K.message(task), 'journalId') == a.journal and pending or lost
  into[#into + 1] = held_task(task)
end
return reply('OK', {epoch = epoch, phone = known.phone, pending = list(pending), lost = list(lost), commands = list(commands_of(a.session, a.now))})
