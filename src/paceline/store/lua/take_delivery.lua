-- Takes one delivery that is due, under a lease: nobody else posts it until then. Of the webhooks that have one, that with the fewest
-- being posted comes first, so a slow receiver does not hold up the others.
-- a: now, lease (ms), parallel (at once for one webhook)
-- Returns OK {webhook, record, delivery (JSON), failingSince?} | NONE {nextAt?}.
local best, fewest
for _, id in ipairs(call('ZRANGEBYSCORE', K.webhooks_due(), '-inf', a.now, 'LIMIT', 0, 100)) do
  call('ZREMRANGEBYSCORE', K.webhook_busy(id), '-inf', a.now)
  local busy = call('ZCARD', K.webhook_busy(id))
  if busy < a.parallel and busy < (fewest or a.parallel) then best, fewest = id, busy end
end
local next_at = call('ZRANGEBYSCORE', K.webhooks_due(), '(' .. ms(a.now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
if not best then return reply('NONE', {nextAt = tonumber(next_at or nil)}) end
local delivery = in_turn(best, a.now)
call('ZADD', K.webhook_outbox(best), a.now + a.lease, delivery)
call('ZADD', K.webhook_busy(best), a.now + a.lease, delivery)
rescore_webhook(best)
return reply('OK', {
  webhook = best, record = call('HGET', K.webhooks(), best), delivery = call('HGET', K.webhook_deliveries(best), delivery),
  failingSince = tonumber(call('HGET', K.webhook(best), 'failingSince') or nil),
})
