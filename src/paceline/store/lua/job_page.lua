-- A stretch of the list of jobs, newest first: those that match. Changes nothing but that ids whose job is gone are dropped.
-- a: look (ids looked at, at most), take (jobs given, at most), after? {at, id}, from?, until?, states? [name …], tag?, by?,
-- single? (true: only single sends, false: only lists of contacts)
-- Returns OK {looked, jobs? [{json, state, closedAt?}], next? {at, id} (the last one looked at; absent at the end)}.
-- Progress is not counted here: over 100,000 bytes that takes Lua 10 ms, and the caller a fraction of one.
local key, wanted = K.jobs_index(), nil
if a.states then
  wanted = {}
  for _, state in ipairs(a.states) do wanted[state] = true end
end

-- How many stand before or at this place. Equal times are in the order of their ids.
local function up_to(place)
  local low, high = call('ZCOUNT', key, '(' .. place.at, '+inf'), call('ZCOUNT', key, place.at, '+inf')
  while low < high do
    local middle = math.floor((low + high) / 2)
    if call('ZREVRANGE', key, middle, middle)[1] >= place.id then low = middle + 1 else high = middle end
  end
  return low
end

local function is_wanted(state, json)
  if wanted and not wanted[state] then return false end
  if not a.tag and not a.by and a.single == nil then return true end
  local job = cjson.decode(json)
  if a.by and job.acceptedBy ~= a.by then return false end
  if a.single ~= nil and (job.single or false) ~= a.single then return false end
  if not a.tag then return true end
  for _, tag in ipairs(job.tags or {}) do
    if tag == a.tag then return true end
  end
  return false
end

local start = a.after and up_to(a.after) or 0
if a['until'] then start = math.max(start, call('ZCOUNT', key, a['until'], '+inf')) end
local ids = call('ZREVRANGE', key, start, start + a.look - 1, 'WITHSCORES')
local jobs, looked, last = {}, 0, nil
for i = 1, #ids, 2 do
  local id, at = ids[i], tonumber(ids[i + 1])
  if a.from and at < a.from then return reply('OK', {jobs = list(jobs), looked = looked}) end
  if #jobs == a.take then break end
  looked, last = looked + 1, {at = at, id = id}
  local json, run = call('GET', K.job(id)), call('HMGET', K.job_run(id), 'state', 'closedAt')
  if not json or not run[1] then
    call('ZREM', key, id)
  elseif is_wanted(run[1], json) then
    jobs[#jobs + 1] = {json = json, state = run[1], closedAt = tonumber(run[2] or nil)}
  end
end
local is_end = looked * 2 == #ids and looked < a.look
return reply('OK', {jobs = list(jobs), looked = looked, next = not is_end and last or nil})
