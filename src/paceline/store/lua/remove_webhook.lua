-- Forgets a webhook with all that waits for it and all that was delivered.
-- a: id, by, now
-- Returns OK | GONE.
if call('HDEL', K.webhooks(), a.id) == 0 then return reply('GONE') end
call('ZREM', K.webhooks_due(), a.id)
call('DEL', K.webhook(a.id), K.webhook_outbox(a.id), K.webhook_busy(a.id), K.webhook_log(a.id), K.webhook_ended(a.id),
  K.webhook_deliveries(a.id))
audit('OPERATOR', a.now, {action = 'remove_webhook', webhookId = a.id, by = a.by})
return reply('OK')
