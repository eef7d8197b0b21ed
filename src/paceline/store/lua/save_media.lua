-- Records a stored file, or that it was stored again; its bytes are on the disk already.
-- a: ref, type, size, name?, now
-- Returns OK {createdAt} (its first time) | KNOWN {createdAt}. The newest name is kept: each job takes a copy of it.
local key = K.media(a.ref)
local is_new = call('HSETNX', key, 'createdAt', a.now) == 1
call('HSET', key, 'type', a.type, 'size', a.size, 'lastUsedAt', a.now)
if a.name then call('HSET', key, 'name', a.name) else call('HDEL', key, 'name') end
call('ZADD', K.media_kept(), 'GT', a.now, a.ref)
return reply(is_new and 'OK' or 'KNOWN', {createdAt = tonumber(call('HGET', key, 'createdAt'))})
