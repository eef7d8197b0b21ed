-- A receiver is back, somebody says: what failed for good is tried again from the start, what waits for a try goes now, and a webhook that
-- was disabled is enabled.
-- a: id, from?, until? (of the events' times), by, now
-- Returns OK {redriven, pulled} | GONE.
if call('HEXISTS', K.webhooks(), a.id) == 0 then return reply('GONE') end
call('HDEL', K.webhook(a.id), 'disabledAt', 'disabledReason', 'failingSince')
local pulled, redriven = pull_deliveries(a.id, a.now), 0
for _, id in ipairs(call('ZRANGE', K.webhook_ended(a.id), 0, -1)) do
  local delivery = delivery_of(a.id, id)
  local meant = delivery.state == 'failed' and delivery.at >= (a.from or 0) and delivery.at <= (a['until'] or delivery.at)
  if meant then
    delivery.state, delivery.tries, delivery.nextAt, delivery.endedAt = 'pending', 0, a.now, nil
    keep_delivery(a.id, delivery)
    call('ZREM', K.webhook_ended(a.id), id)
    call('ZADD', K.webhook_outbox(a.id), a.now, id)
    redriven = redriven + 1
  end
end
rescore_webhook(a.id)
audit('OPERATOR', a.now, {action = 'redrive_webhook', webhookId = a.id, by = a.by, redriven = redriven, pulled = pulled})
return reply('OK', {redriven = redriven, pulled = pulled})
