-- Lists: one message as a list shows it.

local LISTED = {
  'handed', 'phone', 'attempts', 'errorCode', 'errorMessage', 'waitReason', 'waitUntil', 'claimedAt', 'sentAt', 'deliveredAt', 'readAt', 'endedAt',
}

-- Only the fields a list shows: the history of a message that was tried often is far longer than all the rest.
local function message_row(job, index, byte)
  local task, known = job .. ':' .. index, {}
  for i, value in ipairs(call('HMGET', K.message(task), unpack(LISTED))) do known[LISTED[i]] = value or nil end
  told_apart(known)
  known.handed = nil
  return {
    task = task, byte = byte, known = known, phone = call('HGET', K.job_routes(job), index) or nil,
    contact = call('LINDEX', K.job_contacts(job, math.floor(index / C.chunk)), index % C.chunk) or '',
  }
end
