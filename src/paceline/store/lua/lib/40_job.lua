-- Jobs: what both ways of accepting one (a job, a single send) write.

-- Whether the file a job needs is no longer stored: it may have been cleaned up since the gateway looked.
local function media_is_gone(ref) return ref and call('EXISTS', K.media(ref)) == 0 end

-- What an open job refers to is not cleaned up. The job keeps the ref beside its state, where its end looks.
local function hold_media(ref, job, now)
  call('HSET', K.job_run(job), 'media', ref)
  call('ZADD', K.media_jobs(ref), ms(now), job)
  call('HSET', K.media(ref), 'lastUsedAt', ms(now))
  call('ZADD', K.media_kept(), 'GT', ms(now), ref)
end

-- Takes the ids of jobs that are gone out of so many at that place of the list. True if there were any.
local function drop_gone(key, at, count)
  local ids, jobs = call('ZRANGE', key, whole(at), whole(at + count - 1)), {}
  for i, id in ipairs(ids) do jobs[i] = K.job(id) end
  -- Nearly always all of them are there, which is one question.
  if call('EXISTS', unpack(jobs)) == #jobs then return false end
  for i, id in ipairs(ids) do
    if call('EXISTS', jobs[i]) == 0 then call('ZREM', key, id) end
  end
  return true
end

-- For lists of jobs. Ids of jobs that are gone leave it a few at a time, at a place that wanders with the clock: it stays bounded even
-- if nobody ever reads it, and a job that lives for long shields nothing behind it. Where a few are all there it is left at that, however
-- many arrived: each is a look at a job that nobody has touched for long.
local function note_jobs(arrived, now)
  local key = K.jobs_index()
  call('ZADD', key, unpack(arrived))
  local at = now % call('ZCARD', key)
  if drop_gone(key, at, 4) and #arrived > 2 then drop_gone(key, at, #arrived * 2) end
end

-- A job that came alone, or with others: these are noted together (note_arrived).
local function note_job(job, now)
  if batch then add_pair(batch.jobs, now, job) else note_jobs({ms(now), job}, now) end
end

-- Keys and their texts, in pairs; of several orders all together (set_noted). MSET cannot fail over what stands there, so a job that is in
-- a queue by then is there, too.
local function set_texts(...)
  if not batch then return call('MSET', ...) end
  local texts_, given = batch.texts, {...}
  local count = #texts_
  for i, text in ipairs(given) do texts_[count + i] = text end
end

local function set_noted()
  if #batch.texts > 0 then call('MSET', unpack(batch.texts)) end
end

local function note_arrived()
  if #batch.jobs > 0 then note_jobs(batch.jobs, tonumber(batch.jobs[1])) end
end

-- The answer to a request under an Idempotency-Key is kept in the step that accepts it. A key that was freed meanwhile would come back
-- without a TTL.
local function keep_answer(idem)
  if idem and call('EXISTS', idem.key) == 1 then call('HSET', idem.key, 'state', 'done', 'answer', idem.answer) end
end

-- j: job, json, total, now, media?; state, cursor, byte: of one that is routed already
local function create_job(j, state, cursor, byte)
  set_texts(K.job(j.job), j.json, K.job_states(j.job), string.rep(byte or 'q', j.total), K.job_total(j.job), whole(j.total),
    K.job_open(j.job), whole(j.total))
  call('HSET', K.job_run(j.job), 'state', state or 'QUEUED', 'cursor', cursor or '0', 'acceptedAt', ms(j.now))
  if j.media then hold_media(j.media, j.job, j.now) end
  note_job(j.job, j.now)
  job_event('JOB_ACCEPTED', j.job, j.now, {total = j.total})
end

-- Turns are counted, not timed: two in the same millisecond have an order too.
local function took_turn(job) call('HSET', K.job_run(job), 'turn', call('INCR', K.turn_counter())) end

-- The answer to a router whose turn is over: another was here, or the job takes no more. Nothing if the turn is its own.
-- Of a paused job messages may still end (their validity does not wait), but none may go anywhere.
local function turn_is_over(job, cursor, only_ends)
  local run = call('HMGET', K.job_run(job), 'cursor', 'state')
  if tonumber(run[1] or '-1') ~= cursor then return reply('STALE') end
  if run[2] == 'QUEUED' or run[2] == 'ROUTING' or (run[2] == 'PAUSED' and only_ends) then return nil end
  call('ZREM', K.jobs_active(), job)
  return reply('CLOSED')
end

-- Which phone writes to this person, since when, and when they last wrote to it if they did: one text, `phone at warm`. Nil if none does.
-- Whatever else stands there binds nobody, and the next binding replaces it.
local function sticky_of(to)
  local text = redis.pcall('GET', K.sticky(to))
  local phone, at, warm = string.match(type(text) == 'string' and text or '', '^(%S+) (%d+) ?(%d*)$')
  return phone, tonumber(at), tonumber(warm)
end

-- For so many seconds; as long as before if none are given.
local function stick(to, phone, at, warm, ttl)
  local text = phone .. ' ' .. ms(at) .. (warm and ' ' .. ms(warm) or '')
  if ttl then call('SET', K.sticky(to), text, 'EX', ttl) else call('SET', K.sticky(to), text, 'KEEPTTL') end
end

-- This phone writes to this person: provisional at routing, confirmed by a send. One who wrote to another phone stays with that one.
-- `is_unbound`: the script knows that no phone does yet.
local function bind(to, phone, now, is_unbound)
  if is_unbound then return stick(to, phone, now, nil, C.sticky_ttl) end
  local known, at, warm = sticky_of(to)
  local is_warm = (warm or 0) > now - C.warm_ms
  if is_warm and known ~= phone then return end
  -- To the hour is enough for what lasts a month.
  if known == phone and at > now - 3600000 then return end
  -- Never shorter than it was: a warm chat is remembered for long.
  stick(to, phone, now, known == phone and warm or nil, not is_warm and C.sticky_ttl or nil)
end

-- For the list of a person's messages: this task got a number. By its job's acceptance, so that it keeps its place in that list.
-- `is_first`: the script knows that there is no such list yet.
local function note_person(to, task, accepted_at, is_first)
  local key = K.person(to)
  call('ZADD', key, ms(accepted_at), task)
  local count = is_first and 1 or call('ZCARD', key)
  if count > C.person_kept then call('ZREMRANGEBYRANK', key, '0', whole(count - C.person_kept - 1)) end
  -- Of whoever is written to every day those whose job is forgotten by now are dropped, too.
  if count > 1 then call('ZREMRANGEBYSCORE', key, '-inf', ms(accepted_at - (C.job_ttl + C.message_ttl) * 1000)) end
  call('EXPIRE', key, C.message_ttl)
end

-- A job of one straight into its phone's queue, or waiting for its time. j: as accept_send has it. `is_new`: nothing is stored of the person
-- it goes to. Returns how many go before it.
local function accept_single(j, is_new)
  local is_later = j.sendAt and j.sendAt > j.now
  j.total, j.single = 1, true
  -- First of all what fails where a number cannot be read: a job that is there must not be missing in its queue.
  local before = is_later and ahead(j.phone, j.priority) or enqueue(j.phone, j.task, j, j.now)
  create_job(j, 'ROUTED', '1', is_later and 's' or 'r')
  call('RPUSH', K.job_contacts(j.job, 0), j.contact)
  call('HSET', K.job_routes(j.job), '0', j.phone)
  call('SADD', K.singles(j.phone), j.task)
  if is_later then
    local member = {task = j.task, phone = j.phone, to = j.to, tz = j.tz, expiresAt = j.expiresAt, priority = j.priority, single = true}
    call('ZADD', K.scheduled(), ms(j.sendAt), cjson.encode(member))
    wake('due')
  end
  bind(j.to, j.phone, j.now, is_new)
  note_person(j.to, j.task, j.now, is_new)
  return before
end
