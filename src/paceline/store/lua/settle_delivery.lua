-- What became of one try of a delivery.
-- a: webhook, delivery, tries (it had before this one), outcome (delivered | retry | failed), status?, error?, nextAt (retry), disable?
--    (reason: nothing more is posted there), kept (ended deliveries), settled (ms a webhook must have failed for its return to be one), now
-- Returns OK {state} | REPEAT {state} (it had ended) | STALE (another had the lease and was quicker; that it was delivered counts all the
-- same) | GONE.
local key, delivery = K.webhook(a.webhook), delivery_of(a.webhook, a.delivery)
if not delivery then return reply('GONE') end
if delivery.state ~= 'pending' then return reply('REPEAT', {state = delivery.state}) end
if a.outcome ~= 'delivered' and delivery.tries ~= a.tries then return reply('STALE') end
call('ZREM', K.webhook_busy(a.webhook), a.delivery)
delivery.tries, delivery.lastAt, delivery.status, delivery.error = delivery.tries + 1, a.now, a.status, a.error
if a.outcome == 'retry' then
  delivery.nextAt = a.nextAt
  call('ZADD', K.webhook_outbox(a.webhook), a.nextAt, a.delivery)
else
  delivery.state, delivery.nextAt, delivery.endedAt = a.outcome, nil, a.now
  call('ZREM', K.webhook_outbox(a.webhook), a.delivery)
  call('ZADD', K.webhook_ended(a.webhook), delivery.number, a.delivery)
end
keep_delivery(a.webhook, delivery)
local surplus = call('ZCARD', K.webhook_ended(a.webhook)) - a.kept
if surplus > 0 then
  local old = call('ZPOPMIN', K.webhook_ended(a.webhook), surplus)
  for i = 1, #old, 2 do
    call('ZREM', K.webhook_log(a.webhook), old[i])
    call('HDEL', K.webhook_deliveries(a.webhook), old[i])
  end
end
if a.outcome == 'delivered' then
  -- It is back: what waited for that goes now. After a short hiccup nothing is pulled, or one event that is always refused would use up
  -- its tries at the pace of those that are not.
  local since = tonumber(call('HGET', key, 'failingSince') or nil)
  call('HDEL', key, 'failingSince')
  if since and a.now - since >= a.settled then pull_deliveries(a.webhook, a.now) end
else
  call('HSETNX', key, 'failingSince', a.now)
end
if a.disable and not is_disabled(a.webhook) then
  call('HSET', key, 'disabledAt', a.now, 'disabledReason', a.disable)
  incident('WEBHOOK_DISABLED', a.now, {webhookId = a.webhook, reason = a.disable})
end
rescore_webhook(a.webhook)
return reply('OK', {state = delivery.state})
