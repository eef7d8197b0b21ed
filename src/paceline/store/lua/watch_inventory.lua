-- Looks how much is left of both pools and tells once when it is little and once when it is nothing, until there is enough again.
-- a: low (fewer than so many are few), perProxy, now
-- Returns OK {told? [{what, level}]}.
-- A pool that was never filled is low only if somebody asked for something out of it: whoever needs no proxies is not told of none.
keep_limit(a.perProxy)
local told = {}

local function watch(what, available, is_needed)
  local level = not is_needed and 'ENOUGH' or available == 0 and 'NONE' or available < a.low and 'FEW' or 'ENOUGH'
  local known = call('HGET', K.inventory(), what .. 'Low')
  if level == 'ENOUGH' then
    if known then
      call('HDEL', K.inventory(), what .. 'Low')
      incident('INVENTORY_OK', a.now, {what = what, available = available, low = a.low})
    end
  -- A little more than nothing is not enough: the next nothing is no news.
  elseif level ~= known and known ~= 'NONE' then
    call('HSET', K.inventory(), what .. 'Low', level)
    incident('INVENTORY_LOW', a.now, {what = what, level = level, available = available, low = a.low})
    told[#told + 1] = {what = what, level = level}
  end
end

watch('proxies', call('SCARD', K.proxies_available()), call('SCARD', K.proxies()) > 0 or call('HEXISTS', K.inventory(), 'proxyAsked') == 1)
watch('profiles', call('SCARD', K.profiles_available()), call('ZCARD', K.profiles_numbers()) > 0)
return reply('OK', {told = list(told)})
