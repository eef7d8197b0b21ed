-- Puts profiles into the pool. One that is there already stays as it is, also if a session has it.
-- a: profiles [{profileId, line, isObject, displayName?, timezone?, tags? (JSON), createdAt?}], limit (of the whole pool), by, now
-- Returns OK {added, duplicates, refused? [position from 0 …]}: refused are those for which the pool has no room.
local added, duplicates, refused = 0, 0, {}
local size = call('ZCARD', K.profiles_numbers())
for position, profile in ipairs(a.profiles) do
  local id = profile.profileId
  if call('ZSCORE', K.profiles_numbers(), id) then
    duplicates = duplicates + 1
  elseif size + added >= a.limit then
    refused[#refused + 1] = position - 1
  else
    added = added + 1
    local number = call('HINCRBY', K.inventory(), 'lastProfile', 1)
    call('ZADD', K.profiles_numbers(), number, id)
    call('ZADD', K.profiles_free(), number, id)
    call('HSET', K.profile(id), 'line', profile.line, 'isObject', profile.isObject and 1 or 0, 'addedAt', a.now)
    for _, field in ipairs({'displayName', 'timezone', 'tags'}) do
      if profile[field] then call('HSET', K.profile(id), field, profile[field]) end
    end
    if profile.createdAt then call('HSET', K.profile(id), 'createdAt', profile.createdAt) end
    call('SADD', K.profiles_available(), id)
  end
end
if added > 0 then
  audit('OPERATOR', a.now, {action = 'PROFILES_ADDED', by = a.by, added = added})
  wake('fleet')
end
return reply('OK', {added = added, duplicates = duplicates, refused = list(refused)})
