-- Puts the next events into a webhook's outbox and moves its cursor past them, in one step: a crash loses none, and of two feeders one
-- is refused.
-- a: id, from (the cursor these events follow), cursor (the place behind them), items? [{id, event (JSON), type, at}], behind? (some were
--    gone before it got to them), now
-- Returns OK {added} | STALE | GONE.
local key = K.webhook(a.id)
local cursor = call('HGET', key, 'cursor')
if not cursor then return reply('GONE') end
if cursor ~= a.from then return reply('STALE') end
call('HSET', key, 'cursor', a.cursor)
local added = 0
for _, item in ipairs(a.items or {}) do
  if call('HEXISTS', K.webhook_deliveries(a.id), item.id) == 0 then
    local number = call('HINCRBY', key, 'number', 1)
    keep_delivery(a.id, {
      id = item.id, event = item.event, type = item.type, at = item.at, number = number, state = 'pending', tries = 0,
      createdAt = a.now, nextAt = a.now,
    })
    call('ZADD', K.webhook_log(a.id), number, item.id)
    call('ZADD', K.webhook_outbox(a.id), a.now, item.id)
    added = added + 1
  end
end
if a.behind then incident('WEBHOOK_BEHIND', a.now, {webhookId = a.id, after = a.from}) end
if added > 0 then rescore_webhook(a.id) end
return reply('OK', {added = added})
