-- A customer wants events at a URL, from now on.
-- a: id, record (JSON), limit (webhooks there may be), by, now
-- Returns OK | FULL. Repeating it changes nothing.
if call('HEXISTS', K.webhooks(), a.id) == 1 then return reply('OK') end
if call('HLEN', K.webhooks()) >= a.limit then return reply('FULL') end
local newest = call('XREVRANGE', K.events(), '+', '-', 'COUNT', 1)[1]
call('HSET', K.webhooks(), a.id, a.record)
call('HSET', K.webhook(a.id), 'cursor', newest and newest[1] or '0-0')
audit('OPERATOR', a.now, {action = 'create_webhook', webhookId = a.id, by = a.by})
return reply('OK')
