-- Frees what was copied out of the audit trail.
-- a: before (a place in the stream; what lies before it goes)
-- Returns OK {freed}. Repeating it changes nothing.
return reply('OK', {freed = call('XTRIM', K.audit(), 'MINID', a.before)})
