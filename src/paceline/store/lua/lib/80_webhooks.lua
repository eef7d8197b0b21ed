-- Webhooks: where customers want events, and the deliveries that wait for them.

local function is_disabled(id) return call('HGET', K.webhook(id), 'disabledAt') and true or false end

-- When somebody should look at this webhook next: its first delivery's time. A disabled one keeps what waits and is not looked at.
local function rescore_webhook(id)
  local first = call('ZRANGE', K.webhook_outbox(id), 0, 0, 'WITHSCORES')[2]
  if first and not is_disabled(id) then call('ZADD', K.webhooks_due(), first, id) else call('ZREM', K.webhooks_due(), id) end
end

local function delivery_of(id, delivery)
  local raw = call('HGET', K.webhook_deliveries(id), delivery)
  return raw and cjson.decode(raw)
end

local function keep_delivery(id, delivery) call('HSET', K.webhook_deliveries(id), delivery.id, cjson.encode(delivery)) end

-- The delivery whose turn it is, of those that are due: the first, and of several that fell due in the same moment that of the first event.
-- Redis would sort these by their ids as text, the tenth before the second. An outbox has a thousand at most, and as many that are redriven.
local function in_turn(id, now)
  local first = call('ZRANGEBYSCORE', K.webhook_outbox(id), '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
  local together = call('ZRANGEBYSCORE', K.webhook_outbox(id), first[2], first[2], 'LIMIT', 0, 2000)
  local best, least
  for i, number in ipairs(call('ZMSCORE', K.webhook_log(id), unpack(together))) do
    number = tonumber(number) or 0
    if not least or number < least then best, least = together[i], number end
  end
  return best
end

-- What waits for its next try goes now, but what is just being posted. Returns how many.
local function pull_deliveries(id, now)
  local pulled = 0
  for _, waiting in ipairs(call('ZRANGEBYSCORE', K.webhook_outbox(id), '(' .. ms(now), '+inf')) do
    if not call('ZSCORE', K.webhook_busy(id), waiting) then
      call('ZADD', K.webhook_outbox(id), now, waiting)
      pulled = pulled + 1
    end
  end
  return pulled
end
