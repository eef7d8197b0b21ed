-- Writes down an incident that no other verb makes: what a service sees outside Redis.
-- a: kind, fields, now
-- Returns OK. Said twice it stands there twice; whoever says it knows whether it is news.
incident(a.kind, a.now, a.fields)
return reply('OK')
