-- The last step of removing a session: its worker is gone, now its places, its profile and its row go too.
-- a: session, now
-- Returns OK | GONE (there is none; it may have been this call before) | NOT_REMOVING | BUSY {tasks}.
-- BUSY: messages that its worker held have not ended. No worker will speak for them any more, so their time is over now: the sweeper
-- returns, asks in vain and ends them, and a later call finds none.
local key = K.session(a.session)
local known = hash(key)
if not known.phone then return reply('GONE') end
if known.removing ~= '1' then return reply('NOT_REMOVING') end
local tasks = 0
for _, list_key in ipairs({K.outbox(a.session), K.processing(a.session)}) do
  for _, task in ipairs(call('LRANGE', list_key, 0, -1)) do
    tasks = tasks + 1
    call('ZADD', K.deadlines(), 'LT', a.now, task_of(task) or task)
  end
end
if tasks > 0 then return reply('BUSY', {tasks = tasks}) end
let_go(a.session, known, a.now, 'REMOVED')
give_back_profile(a.session, known, a.now)
keep_override(known.phone)
local floor = tonumber(call('GET', K.epoch_floor()) or '0')
call('SET', K.epoch_floor(), ms(math.max(floor, tonumber(known.epoch or '0') + 1)))
call('DEL', key, K.session_status(a.session), K.session_qr(a.session), K.session_pairing(a.session), K.session_commands(a.session),
  K.session_events(a.session), K.session_rpm(a.session), K.session_rpm_source(a.session))
call('SREM', K.sessions(), a.session)
call('HDEL', K.sessions_seen(), a.session)
call('HDEL', K.pacer(known.phone), failed_field(a.session))
if known.driver ~= 'simulated' and call('EXISTS', K.sessions_real()) == 1 then call('DECR', K.sessions_real()) end
call('SREM', K.phone_sessions(known.phone), a.session)
list_sessions(known.phone)
tell('session.status', a.now, 's', a.session, 'phone', known.phone, 'connection', 'STOPPED', 'authorisation', known.authorisation or '')
binding(a.session, known, a.now, {action = 'SESSION_REMOVED', status = 'REMOVED'})
return reply('OK')
