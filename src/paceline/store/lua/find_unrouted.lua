-- Looks for a person among the contacts that have no number yet: the newest jobs first, each from its cursor on. Changes nothing.
-- a: to [digits …] (all ways to write the number), jobs (how many jobs, at most), contacts (looked at in one call, at most), after? {at, id, index} (the last one looked at)
-- Returns OK {found? [{at, id, index} …], next? {at, id, index} (the `after` to go on with; absent at the end)}.
local found, left, last, wanted = {}, a.contacts, nil, {}
for _, digits in ipairs(a.to) do wanted[digits] = true end

-- Where to begin in a job; nothing if all of it was looked at.
local function first_index(job, at)
  local cursor, after = tonumber(call('HGET', K.job_run(job), 'cursor') or '0'), a.after
  if not after or at < after.at or (at == after.at and job < after.id) then return cursor end
  return job == after.id and math.max(cursor, after.index + 1) or nil
end

local function look(job, at, index, contacts)
  for i, contact in ipairs(contacts) do
    -- A contact is its digits, or JSON that begins with them. What was canceled, or expired, waits no more.
    local digits = string.match(contact, '^{"to":"(%d+)"') or contact
    if wanted[digits] and byte_of(job .. ':' .. (index + i - 1)) == 'q' then
      found[#found + 1] = {at = at, id = job, index = index + i - 1}
    end
  end
  left, last = left - #contacts, {at = at, id = job, index = index + #contacts - 1}
end

local jobs = call('ZREVRANGE', K.jobs_unrouted(), 0, a.jobs - 1, 'WITHSCORES')
for i = 1, #jobs, 2 do
  local job, at = jobs[i], tonumber(jobs[i + 1])
  local index, total = first_index(job, at), call('STRLEN', K.job_states(job))
  while index and index < total do
    if left == 0 then return reply('OK', {found = list(found), next = last}) end
    local offset = index % C.chunk
    local contacts = call('LRANGE', K.job_contacts(job, math.floor(index / C.chunk)), offset, math.min(offset + left, C.chunk) - 1)
    if #contacts == 0 then break end
    look(job, at, index, contacts)
    index = index + #contacts
  end
end
return reply('OK', {found = list(found)})
