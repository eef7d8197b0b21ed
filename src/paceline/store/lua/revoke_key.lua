-- Revokes an API key. Its record stays, so that who asked for a job can still be told.
-- a: id, by (key id), now
-- Returns OK {record}, REVOKED {record} (it was revoked before: nothing changes), UNKNOWN_KEY.
local text = call('HGET', K.api_keys(), a.id)
if not text then return reply('UNKNOWN_KEY') end
local record = cjson.decode(text)
if record.revokedAt then return reply('REVOKED', {record = text}) end
record.revokedAt, record.revokedBy = a.now, a.by
text = cjson.encode(record)
call('HSET', K.api_keys(), a.id, text)
audit('OPERATOR', a.now, {action = 'revoke_key', keyId = a.id, by = a.by})
return reply('OK', {record = text})
