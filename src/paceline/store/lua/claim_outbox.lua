-- Gives the task at the head of an outbox to its worker, under a lease and a new fencing token.
-- a: session, epoch, task, now, leaseUntil, handedOffAt? (of the hand-over that was decided on)
-- Returns OK {token, attempt, resend} | STALE_EPOCH | GONE (not at the head any more, or handed over anew since) | ENDED (canceled or proven sent; to be
-- cleared) | SUPPRESSED | PAUSED (fleet, number, session or job) | RESTRICTED (a new chat on a number that may start none).
if not is_newest(a.session, a.epoch) then return reply('STALE_EPOCH') end
if task_of(call('LINDEX', K.outbox(a.session), -1) or '') ~= a.task then return reply('GONE') end
local key = K.message(a.task)
local about = message_of(a.task)
if byte_of(a.task) ~= 'h' then return reply('ENDED') end
-- One that was handed over anew may have another time to send.
if a.handedOffAt and tonumber(about.handedOffAt) ~= a.handedOffAt then return reply('GONE') end
local phone = call('HMGET', K.phone(about.phone), 'quarantined', 'cooldownUntil')
if call('HGET', K.fleet(), 'paused') == '1' or phone[1] == '1' or tonumber(phone[2] or '0') > a.now then return reply('PAUSED') end
if call('HGET', K.session(a.session), 'paused') == '1' then return reply('PAUSED') end
if job_is_paused((split(a.task))) then return reply('PAUSED') end
if is_restricted(about.phone, a.now) and not knows(about.phone, about.to) then return reply('RESTRICTED') end
if is_suppressed(about.to, a.task) then return reply('SUPPRESSED') end
call('RPOP', K.outbox(a.session))
call('LPUSH', K.processing(a.session), a.task)
move(a.task, 'c', a.now)
local token = call('INCR', K.token_counter())
local attempt = call('HINCRBY', key, 'attempts', 1)
call('HSET', key, 'token', token, 'epoch', a.epoch, 'claimedAt', a.now, 'leaseUntil', a.leaseUntil,
  'journalId', call('HGET', K.session(a.session), 'journalId') or '')
call('ZADD', K.deadlines(), a.leaseUntil, a.task)
return reply('OK', {token = token, attempt = attempt, resend = about.maybeSent == '1'})
