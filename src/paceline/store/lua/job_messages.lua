-- A stretch of a job's messages in the order of its contacts: those in the wanted states. Changes nothing.
-- a: job, start (index), limit, bytes? (the state bytes that are wanted; left out, all)
-- Returns OK {rows? [row …], next? (the index of the next that matches)} | GONE.
local states = call('GET', K.job_states(a.job))
if not states then return reply('GONE') end
local wanted, rows = a.bytes and '[' .. a.bytes .. ']' or '%a', {}
local at = string.find(states, wanted, a.start + 1)
while at and #rows < a.limit do
  rows[#rows + 1] = message_row(a.job, at - 1, string.sub(states, at, at))
  at = string.find(states, wanted, at + 1)
end
return reply('OK', {rows = list(rows), next = at and at - 1})
