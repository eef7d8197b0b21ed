"""Planted bugs: a green run shows something only if the judges would have seen red. Each of these must be caught."""

from paceline.testing.planting import Bug

_PROVISIONER = "paceline.orchestrator.provisioner.Provisioner"

BUGS = [
    Bug("the task is taken from the queue but not put into the outbox", "I1", {
        "hand_plain.lua": ("pcall('RPOPLPUSH', queue, outbox)", "pcall('RPOP', queue)"),
        "hand_off.lua": ("call('RPOPLPUSH', key, outbox)", "call('RPOP', key)")}, seeds=(-1,)),
    Bug("a task given back is not put back", "I1", {
        "settle_task.lua": ("  put_back(phone, {about.entry})\n", "")}, seeds=(43, 55)),
    Bug("a parked task is forgotten", "I1", {
        "hand_off.lua": ("park_until(phone, step.untilMs, step.entry)", "")}, seeds=(11, 30)),
    Bug("a lease that ends is not noticed", "I1", {
        "overdue.lua": ("call('ZRANGEBYSCORE', K.deadlines(), '-inf', a.now, 'LIMIT', 0, a.limit)", "{}")},
        seeds=(-11,)),
    Bug("a proof that a message went out is ignored once it was given up", "I1", {
        "prove_sent.lua": ("if not move(o.task, PROOF[o.outcome], o.now, byte)",
                           "if has('FEXO', byte) or not move(o.task, PROOF[o.outcome], o.now, byte)")}, seeds=(-22,)),
    Bug("everything is called expired", "I1", {
        "30_phone.lua": (" .. ',' .. ms(fields.expiresAt)", " .. ',0'")},
        seeds=(41, 43)),
    Bug("every other message is called suppressed", "I1", {
        "60_heads.lua": ("is_suppressed(item.to, item.task)", "tonumber(item.to) % 2 == 0")}, seeds=(54,)),
    Bug("every failure is final", "I1", python=("paceline.policy.retry.after_failure", "_no_second_try"),
        seeds=(-30,)),
    Bug("an unknown outcome is sent again although it must be held", "I2",
        python=("paceline.policy.retry.after_unknown", "_resend_always"), seeds=(-22,)),
    Bug("a new message id for every try", "I2", python=("paceline.worker.sender.whatsapp_id", "_new_id_each_time"),
        seeds=(43, 14)),
    Bug("a repeat that is cut off counts as not sent", "I2",
        python=("paceline.worker.recovery.answer_for_pending", "_forgets_the_second_try"), seeds=(-36,)),
    Bug("the send is not stamped", "I3", {
        "50_outbox.lua": ("    keep_text(SENDS, phone, sends)\n", ""),
        "prove_plain.lua": ("call('HSET', K.sends(), unpack(of_done(a.sends, 2, 1)))\n", "")}, seeds=(-20,)),
    Bug("a proof leaves its number busy", "I1", {
        "prove_plain.lua": ("call('HSET', K.pace(), unpack(of_done(a.paces, 2, 1)))\n", "")}, seeds=(-1,)),
    Bug("what came while a number was busy is not looked for", "I1", {
        "prove_plain.lua": ("(due_at or not has_come(phone))", "true")}, seeds=(-26,)),
    Bug("a rest is half as long as it was drawn", "I3", python=("paceline.policy.pacing.next_slot", "_half_a_rest"),
        seeds=(-20,)),
    Bug("no rolling minute, no burst rule", "I3", python=("paceline.policy.pacing.next_slot", "_no_rolling_minute"),
        seeds=(-1,)),
    Bug("the daily unit is not counted", "I4", python=("paceline.store.pacers.with_unit", "_no_unit"), seeds=(8, 36)),
    Bug("hours are those of the server", "I4", python=("paceline.policy.hours.phone_zone", "_server_zone"),
        seeds=(50,)),
    Bug("the gate lets everything pass", "I4", python=("paceline.policy.gate.decide", "_always_give"), seeds=(-8, 13)),
    Bug("what is scheduled goes at once", "I4", python=("paceline.domain.jobs.Job.scheduled_at", "_all_at_once"),
        seeds=(56, 39)),
    Bug("the lowest priority is served first", "I5", {
        "60_heads.lua": ("for priority = 3, 1, -1 do", "for priority = 1, 3 do")}, seeds=(-2,)),
    Bug("the newest is served first", "I5", {
        "30_phone.lua": ("call('LPUSH', queue_key(phone, priority), entry_of(task, fields, seq, now))",
                         "call('RPUSH', queue_key(phone, priority), entry_of(task, fields, seq, now))")},
        seeds=(-1, 20)),
    Bug("the first message of a job goes before all other jobs", "I5", {
        "30_phone.lua": ("call('LPUSH', queue_key(phone, priority), entry_of(task, fields, seq, now))",
                         "call(string.sub(task, -2) == ':0' and 'RPUSH' or 'LPUSH',"
                         " queue_key(phone, priority), entry_of(task, fields, seq, now))")}, seeds=(-2,)),
    Bug("a job is closed by every task that ends", "I6", {
        "20_task.lua": ("call('DECRBY', K.job_open(job), whole(ended)) == 0 then close_job(job, now) end",
                        "call('DECRBY', K.job_open(job), ended) then close_job(job, now) end")},
        seeds=(24, 39)),
    Bug("JOB_DONE is not emitted once but again", "I6", {
        "20_task.lua": ("if not call('SET', K.job_done_emitted(job), ms(now), 'NX', 'EX', C.job_ttl) then return end",
                        "job_event('JOB_DONE', job, now, "
                        "{total = 0, sent = 0, failed = 0, expired = 0, canceled = 0, suppressed = 0})")},
        seeds=(24, 14)),
    Bug("stop is looked up only at intake", "I9", {
        "60_heads.lua": ("is_suppressed(item.to, item.task)", "false"),
        "hand_plain.lua": ("(rests or listed[place])", "rests"),
        "hand_off.lua": ("is_suppressed(to, task)", "false"),
        "open_claim.lua": ("is_suppressed(about.to, task)", "false"),
        "claim_outbox.lua": ("is_suppressed(about.to, a.task)", "false")}, seeds=(-26,)),
    Bug("cancel forgets what is routed", "I9", {"cancel_job.lua": ("'qrspth'", "'q'")}, seeds=(33,)),
    # What the platform lays on numbers.
    Bug("a cool-down is not kept", "I10", python=("paceline.policy.retry.cooldown_until", "_no_cooldown"),
        seeds=(-10,)),
    Bug("a message that was refused is tried again", "I10",
        python=("paceline.policy.retry.after_failure", "_refused_is_retried"), seeds=(-9,)),
    Bug("a message that was refused goes to another number", "I10", {
        "settle_task.lua": ("function OUTCOME.failed()\n", """function OUTCOME.failed()
  for _, other in ipairs(a.code == 'RESTRICTED_463' and call('ZRANGE', K.phones(), 0, -1) or {}) do
    if other ~= phone and waits_again('t') then
      put_back(other, {about.entry})
      make_due(other, a.now)
      return
    end
  end
""")}, seeds=(-9,)),
    Bug("a restriction is forgotten", "I10", {
        "35_limits.lua": ("call('HSET', key, 'restriction', kind, 'restrictedUntil', ends_at)", "")}, seeds=(-9,)),
    Bug("a restricted number puts off people it knows, too", "I10", {
        "60_heads.lua": ("not locked or knows(phone, item.to)", "not locked")}, seeds=(-19,)),
    Bug("the gate puts off people the number knows", "I10",
        python=("paceline.policy.gate._chat_refused", "_knows_nobody"), seeds=(-19,)),
    Bug("the breaker trips at the second number", "I10", {
        "35_limits.lua": ("if call('ZCARD', key) < C.breaker_phones or", "if call('ZCARD', key) < 2 or")},
        seeds=(8,)),
    Bug("the breaker never trips", "I10", {
        "35_limits.lua": ("if call('ZCARD', key) < C.breaker_phones or", "if true or")}, seeds=(-9,)),
    Bug("the breaker remembers a second, not an hour", "I10", {
        "35_limits.lua": ("ms(now - C.breaker_window)", "ms(now - 1000)")},
        seeds=(-9,)),
    Bug("the breaker counts one number again and again", "I10", {
        "35_limits.lua": ("call('ZADD', key, now, phone)", "call('ZADD', key, now, '1')")}, seeds=(-9,)),
    Bug("a ban is not remembered", "I10", {
        "session_event.lua": ("  call('HSET', K.phone(phone), 'quarantined', 1)\n", "")}, seeds=(-11,)),
    Bug("a restored number's queue goes to another", "I10", {
        "requeue_phone.lua": ("  rescan(phone, a.now)\n", """
  for _, other in ipairs(call('ZRANGE', K.phones(), 0, -1)) do
    local entry = other ~= phone and call('RPOP', K.queue(phone))
    while entry do
      put_back(other, {entry})
      make_due(other, a.now)
      entry = call('RPOP', K.queue(phone))
    end
  end
""")}, seeds=(-29,)),
    Bug("a warm chat moves to another number", "I2", python=("paceline.policy.routing.Sticky.is_warm", "_never_warm"),
        seeds=(-17,)),
    Bug("the number a job names is ignored", "I2",
        python=("paceline.policy.routing.Fleet._choose", "_no_name_counts"), seeds=(-18,)),
    # Pace, with all that people and SmartGuard set.
    Bug("every number is as old as can be", "I3", python=("paceline.policy.trust.Policy.level", "_all_are_old"),
        seeds=(3,)),
    Bug("what is set through /pacers is lost", "I3", {
        "set_pacer.lua": ("    call('HSET', key, field, value)\n", "")}, seeds=(-13,)),
    Bug("an operator's rate is not kept", "I3", {
        "70_operators.lua": ("call('HSET', K.session(id), 'rpm', rpm, 'rpmSource', source)", "")},
        seeds=(-13,)),
    Bug("SmartGuard overwrites an operator's rate", "I3", {
        "guard_change.lua": ("if is_manual or #sessions == 0", "if #sessions == 0")},
        python=("paceline.dispatcher.guard.guard_facts", "_everything_is_automatic"), seeds=(-20,)),
    Bug("SmartGuard changes a number at every tick", "I3",
        python=("paceline.dispatcher.guard.guard_facts", "_long_ago"), seeds=(-19,)),
    Bug("an automatic override makes a number faster", "I3",
        python=("paceline.policy.pacing.pace_for", "_automatic_as_manual"), seeds=(-19,)),
    Bug("the fleet's rate is not counted", "I3", {
        "35_limits.lua": ("call('ZADD', K.fleet_sends(), ms(UNSETTLED), member)", "")},
        seeds=(-16,)),
    Bug("the fleet's rate counts only what is under way", "I3", {
        "35_limits.lua": ("if on_wire then call('ZADD', K.fleet_sends(), 'XX', now, member) else", "do")},
        seeds=(-16,)),
    Bug("what a person was sent is not counted", "I4", {
        "35_limits.lua": ("  call('ZADD', key, at, member)\n", "")}, seeds=(-15,)),
    Bug("what a person was sent is forgotten when it is settled", "I4", {
        "35_limits.lua": ("  count_for_person(to, task, at)\n", "")}, seeds=(-15,)),
    # What people hold and cancel.
    Bug("a paused job goes on", "I9", {
        "35_limits.lua": ("return call('HGET', K.job_run(job), 'state') == 'PAUSED'", "return false")}, seeds=(-12,)),
    Bug("what was handed over goes although its job is paused", "I9", {
        "open_claim.lua": ("jobPaused = job_is_paused((split(task)))", "jobPaused = false"),
        "claim_outbox.lua": ("if job_is_paused((split(a.task))) then", "if false then")}, seeds=(-14,)),
    Bug("a paused session goes on", "I9", {
        "30_phone.lua": ("known.id = id", "known.id, known.paused = id, nil"),
        "open_claim.lua": ("sessionPaused = known.paused == '1'", "sessionPaused = false"),
        "claim_outbox.lua": ("if call('HGET', K.session(a.session), 'paused') == '1' then", "if false then")},
        seeds=(-23,)),
    Bug("a resumed job stays paused", "I1", {"resume_job.lua": ("call('HSET', run, 'state', state)", "")},
        seeds=(-14,)),
    Bug("a paused fleet goes on", "I9", {
        "10_base.lua": ("call('HMGET', K.fleet(), 'paused', 'stopped')", "{false, call('HGET', K.fleet(), 'stopped')}"),
        "claim_outbox.lua": ("if call('HGET', K.fleet(), 'paused') == '1' or", "if")}, seeds=(-12,)),
    Bug("a stopped fleet goes on", "I9", {
        "10_base.lua": ("call('HMGET', K.fleet(), 'paused', 'stopped')",
                        "{call('HGET', K.fleet(), 'paused'), false}")}, seeds=(-12,)),
    Bug("one message is canceled in word only", "I9", {
        "cancel_task.lua": ("if TAKE_OUT[byte] then TAKE_OUT[byte]() end",
                            "if byte then return reply('OK', {state = 'X'}) end")}, seeds=(2,)),
    Bug("canceling a queue forgets what is parked", "I9", {
        "cancel_queue.lua": ("call('ZRANGE', K.parked(a.phone), 0, left - 1)", "{}")}, seeds=(-12,)),
    # What workers tell.
    Bug("a late receipt takes a later one back", "I1", {
        "20_task.lua": ("if from == '' or not has(NEXT[from], to) then return false, from end",
                        "if from == '' or not (has(NEXT[from], to) or from == 'R' and to == 'D')"
                        " then return false, from end")}, seeds=(-24,)),
    Bug("a late word about a limit replaces a newer one", "I10", {
        "72_fleet.lua": ("if has(told, name) then return false end", ""),
        "restriction_event.lua": ("if a.at < said_at(", "if false and a.at < said_at(")},
        seeds=(-25, -40, -41)),
    # Its next claim would mend it within seconds.
    Bug("a copy of a worker's word counts again", "I1", {
        "72_fleet.lua": ("if has(told, name) then return false end", ""),
        "open_claim.lua": ("if not a.again then believe_claim(", "if false then believe_claim(")},
        seeds=(-37, -38, -39)),
    Bug("a stop word is not understood", "I9", python=("paceline.policy.stopwords.says_stop", "_deaf"), seeds=(-26,)),
    Bug("every stop is confirmed", "I9", {
        "stop_received.lua": ("if not put_on_list(a.from, a.also, a.info) then return reply('KNOWN') end",
                              "put_on_list(a.from, a.also, a.info)")}, seeds=(-26,)),
    # Workers and their places.
    Bug("a hung worker is left alone", "I8", python=("paceline.orchestrator.watchdog.ailment", "_always_well"),
        seeds=(-28,)),
    Bug("nobody sees the workers that run", "I8", python=(f"{_PROVISIONER}._observed", "_sees_nobody"),
        seeds=(-28,)),
    Bug("nobody sees that a worker ended", "I8", python=(f"{_PROVISIONER}._observed", "_sees_all_alive"),
        seeds=(-28,)),
    Bug("a proxy is filled beyond its limit", "I7", {
        "begin_start.lua": ("call('ZRANGEBYSCORE', K.proxies_load(), '-inf', '(' .. a.perProxy, 'LIMIT', 0, 1)[1]",
                            "call('ZREVRANGE', K.proxies_load(), 0, 0)[1]")}, seeds=(-28,)),
    Bug("a banned number gets another address", "I10", {
        "mark_proxy.lua": ("if call('HGET', K.phone(known.phone), 'quarantined') == '1' then", "if false then"),
        "begin_start.lua": ("if call('HGET', K.phone(phone), 'quarantined') == '1' then return nil end", "")},
        seeds=(-29,)),
    # Files and clocks.
    Bug("a damaged file is sent", "I2", python=("paceline.worker.media.sha256_of", "_whatever_came"), seeds=(-30,)),
    Bug("a worker does not look at its window", "I4", python=("paceline.worker.sender.Sender._window_open", "_open"),
        seeds=(-5, -4)),
    Bug("a worker does not notice that the clock was set back", "I3",
        python=("paceline.worker.servertime.ServerTime.observe", "_first_word_counts"), seeds=(-33,)),
    Bug("a worker goes by its own clock", "I3",
        python=("paceline.worker.servertime.ServerTime.earliest", "_own_clock"), seeds=(-35,)),
    # What customers are told.
    Bug("a delivery that failed is not tried again", "events", {
        "settle_delivery.lua": ("  call('ZADD', K.webhook_outbox(a.webhook), a.nextAt, a.delivery)\n",
                                "  call('ZREM', K.webhook_outbox(a.webhook), a.delivery)\n")}, seeds=(-27,)),
    Bug("the cursor moves past what no outbox has", "events", {
        "feed_webhook.lua": ("for _, item in ipairs(a.items or {}) do",
                             "for _, item in ipairs({unpack(a.items or {}, 2)}) do")}, seeds=(-27,)),
    Bug("every try has an id of its own", "events",
        python=("paceline.gateway.deliveries.public_id", "_another_id"), seeds=(-27,)),
    Bug("an end is told again with every word about it", "events", {
        "20_task.lua": ("for step = (STEP[from] or 0) + 1, last do",
                        "for step = 1, last do")}, seeds=(-27,)),
    # SEND_MODE=api.
    Bug("a hand-over by post is forgotten", "I1", {
        "hand_off.lua": ("call('ZADD', K.handing(), NOW, task)", "")}, seeds=(-18,)),
    # The sweeper would clear it away.
    Bug("a late post brings back what was taken back", "I1", {
        "settle_task.lua": ("-- Before anything is written: what could not go back would wait in no queue.\n",
                            "if a.outcome == 'cleared' and not has(TERMINAL, byte) then return reply('STALE') end\n"),
        "enqueue_outbox.lua": ("if byte == 'h' and known.handing == '1' then", "if has('hrt', byte) then"),
        "claim_outbox.lua": ("if byte_of(a.task) ~= 'h' then", "if not has('hrt', byte_of(a.task)) then")},
        seeds=(-21,)),
]  # fmt: skip
