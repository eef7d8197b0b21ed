-- What sessions did in the last minute. Changes nothing.
-- a: sessions [[session, its phone] …], now
-- Returns [sent, routed, failed] for each, in a plain list.
local found = {}
for i, each_one in ipairs(a.sessions) do found[i] = {last_minute(each_one[2], each_one[1], a.now)} end
return found
