-- Forgets a person where they are known by their number alone: their conversation, their count, who has talked with them, what sessions
-- reported.
-- a: numbers [every notation of theirs], phones? [some of our numbers], sessions? [some of our sessions]
-- Returns OK {count}.
local count = 0
for _, digits in ipairs(a.numbers) do
  count = count + call('DEL', K.sticky(digits), K.recipient_sends(digits), K.person(digits))
  for _, phone in ipairs(a.phones or {}) do count = count + call('ZREM', K.chats(phone), digits) end
end
for _, session in ipairs(a.sessions or {}) do
  for i, event in ipairs(call('LRANGE', K.session_events(session), 0, -1)) do
    local changed = without(event, a.numbers)
    if changed then
      call('LSET', K.session_events(session), i - 1, changed)
      count = count + 1
    end
  end
end
return reply('OK', {count = count})
