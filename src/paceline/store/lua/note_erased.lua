-- Somebody had a person erased. Whom has no place in the trail.
-- a: by, canceled, erased, open (messages), now
-- Returns OK.
audit('OPERATOR', a.now, {action = 'erase_person', by = a.by, canceled = a.canceled, erased = a.erased, open = a.open})
return reply('OK')
