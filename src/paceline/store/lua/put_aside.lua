-- A message whose time is over cannot be settled, because what is stored about it cannot be read: the sweeper steps over it.
-- a: task, error, retry (ms until the next look), now
-- Returns OK. Settling may have taken its deadline before it failed; it gets one again, so that it ends once it was mended.
call('ZADD', K.deadlines(), a.now + a.retry, a.task)
incident('MESSAGE_UNREADABLE', a.now, {taskId = a.task, error = a.error})
return reply('OK')
