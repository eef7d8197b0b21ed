-- One of several services does a piece of work alone, for as long as it says so in time.
-- a: name, holder, now, ttl (ms)
-- Returns OK (taken or kept) | HELD {untilMs} (by somebody else).
local key = K.lease(a.name)
local known = hash(key)
local ends_at, ttl = tonumber(known['until'] or '0'), tonumber(known.ttl or a.ttl)

-- No lease is written with its end so far away: the clock was set back since, and waiting for that end would be to wait for as long. Its
-- holder may live all the same, with a clock that stands still; then it goes on saying so, and `times` goes up.
local function is_left_behind()
  if ends_at - a.now <= 2 * ttl then return false end
  local waited = a.now - tonumber(known.doubtedAt or a.now)
  if known.doubted ~= (known.times or '') or waited < 0 then
    call('HSET', key, 'doubted', known.times or '', 'doubtedAt', a.now)
    return false
  end
  return waited >= ttl
end

if known.holder and known.holder ~= a.holder and ends_at > a.now and not is_left_behind() then return reply('HELD', {untilMs = ends_at}) end
call('HSET', key, 'holder', a.holder, 'until', a.now + a.ttl, 'ttl', a.ttl)
call('HINCRBY', key, 'times', 1)
return reply('OK')
