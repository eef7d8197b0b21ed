-- A worker asks for work: what it has to answer for first, or the task at the head of its outbox with all the last gate reads.
-- a: session, epoch, now, commandsOnly? (it is not connected and cannot take a task), again? (another look within one long poll)
-- Returns OK {pending? [task …], commands? [{id, kind, until, …}], task?, row? (of its phone), times?} | STALE_EPOCH | NOT_WANTED |
-- UNKNOWN_SESSION.
local known = hash(K.session(a.session))
if not known.phone then return reply('UNKNOWN_SESSION') end
if tonumber(known.epoch or '0') ~= a.epoch then return reply('STALE_EPOCH') end
if is_unwanted(known, known.instanceId) then return reply('NOT_WANTED') end
was_seen(a.session, a.now, 'claimedAt', ms(a.now))
if not a.again then believe_claim(a.session, known, not a.commandsOnly, a.now) end
local pending = {}
for _, task in ipairs(call('LRANGE', K.processing(a.session), 0, -1)) do pending[#pending + 1] = held_task(task) end
-- First the past, then what it is told, then new work: a message must not go out beside a logout.
local commands = commands_of(a.session, a.now)
if #pending > 0 or #commands > 0 or a.commandsOnly then
  return reply('OK', {pending = not a.commandsOnly and list(pending) or nil, commands = list(commands)})
end
local waiting = call('LINDEX', K.outbox(a.session), -1)
if not waiting then return reply('OK') end
local task = task_of(waiting)
local about = message_of(task)
local item = item_of(about.entry)
return reply('OK', {
  row = phone_row(known.phone),
  times = {routedAt = item.at, handedOffAt = tonumber(about.handedOffAt)},
  task = {
    task = task, to = about.to, tz = item.tz, state = byte_of(task), expiresAt = item.expiresAt,
    sendAfter = tonumber(about.sendAfter), day = about.day, maybeSent = about.maybeSent == '1',
    suppressed = is_suppressed(about.to, task),
    isKnown = not is_restricted(known.phone, a.now) or knows(known.phone, about.to), jobPaused = job_is_paused((split(task))),
    sessionPaused = known.paused == '1',
  },
})
