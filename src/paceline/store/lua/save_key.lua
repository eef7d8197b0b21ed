-- Stores an API key's record (its hash and scopes, never the key itself).
-- a: id, record (JSON)
-- Returns OK.
call('HSET', K.api_keys(), a.id, a.record)
return reply('OK')
