-- Stores a new API key's record (its hash and scopes, never the key itself), and forgets those that ended long ago.
-- a: id, record (JSON), ended_before (ms: what was revoked or expired before it is forgotten), limit
-- Returns OK (also when it is there already: the same call again), KEYS_FULL {limit}.
if call('HEXISTS', K.api_keys(), a.id) == 1 then return reply('OK') end
local flat, count = call('HGETALL', K.api_keys()), 0
for i = 1, #flat, 2 do
  local known = cjson.decode(flat[i + 1])
  if (known.revokedAt or known.expiresAt or a.ended_before) < a.ended_before then
    call('HDEL', K.api_keys(), flat[i])
  else
    count = count + 1
  end
end
if count >= a.limit then return reply('KEYS_FULL', {limit = a.limit}) end
call('HSET', K.api_keys(), a.id, a.record)
local made = cjson.decode(a.record)
audit('OPERATOR', made.createdAt or 0, {action = 'create_key', keyId = a.id, by = made.createdBy, scopes = made.scopes})
return reply('OK')
