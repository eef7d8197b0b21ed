-- Some messages as lists show them, in the order asked for. Changes nothing.
-- a: tasks [task …]
-- Returns OK {rows? [row …]}; a message whose job is gone is left out.
local rows = {}
for _, task in ipairs(a.tasks) do
  local byte = byte_of(task)
  if byte ~= '' then
    local job, index = split(task)
    rows[#rows + 1] = message_row(job, index, byte)
  end
end
return reply('OK', {rows = list(rows)})
