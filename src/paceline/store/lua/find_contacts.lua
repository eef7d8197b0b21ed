-- Looks for a person among the contacts of some jobs, so many contacts at a time.
-- a: jobs [id …], at? {job (place in that list, from 1), chunk}, numbers [every notation of theirs], contacts (how many to look at)
-- Returns OK {found? [task …], next? (the `at` to go on from)}. Changes nothing.
local named, found, looked = {}, {}, 0
for _, digits in ipairs(a.numbers) do named[#named + 1] = '"to":"' .. digits .. '"' end

local function is_theirs(contact)
  for i, digits in ipairs(a.numbers) do
    if contact == digits or string.find(contact, named[i], 1, true) then return true end
  end
  return false
end

local job, chunk = a.at and a.at.job or 1, a.at and a.at.chunk or 0
while a.jobs[job] do
  local contacts = call('LRANGE', K.job_contacts(a.jobs[job], chunk), 0, -1)
  for i, contact in ipairs(contacts) do
    if is_theirs(contact) then found[#found + 1] = a.jobs[job] .. ':' .. (chunk * C.chunk + i - 1) end
  end
  looked = looked + math.max(#contacts, 10)
  if #contacts == C.chunk then chunk = chunk + 1 else job, chunk = job + 1, 0 end
  if looked >= a.contacts then break end
end
return reply('OK', {found = list(found), next = a.jobs[job] and {job = job, chunk = chunk} or nil})
