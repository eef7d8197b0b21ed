-- Forgets a person in what customers are told: events that name them are dropped, deliveries lose their number and what they wrote.
-- a: numbers [every notation of theirs], limit, after? (an entry of the stream; "-" first) | webhook? and cursor (of the scan; "0" first)
-- Returns OK {count, after? (go on from there)} | OK {count, cursor ("0": all were seen)}.
local count, last = 0, nil

-- What they wrote, and what a receiver answered to it, which may quote it.
local function without_words(raw)
  local delivery = cjson.decode(raw)
  local event = cjson.decode(delivery.event)
  if not event.fields or not event.fields.text then return raw end
  event.fields.text, delivery.error = nil, nil
  delivery.event = cjson.encode(event)
  return cjson.encode(delivery)
end

if a.webhook then
  local page = call('HSCAN', K.webhook_deliveries(a.webhook), a.cursor, 'COUNT', a.limit)
  for i = 1, #page[2], 2 do
    local changed = without(page[2][i + 1], a.numbers)
    if changed then
      call('HSET', K.webhook_deliveries(a.webhook), page[2][i], without_words(changed))
      count = count + 1
    end
  end
  return reply('OK', {count = count, cursor = page[1]})
end
local entries = call('XRANGE', K.events(), a.after, '+', 'COUNT', a.limit)
for _, entry in ipairs(entries) do
  last = entry[1]
  for i = 2, #entry[2], 2 do
    if without(entry[2][i], a.numbers) then
      count = count + call('XDEL', K.events(), entry[1])
      break
    end
  end
end
return reply('OK', {count = count, after = #entries == a.limit and last or nil})
