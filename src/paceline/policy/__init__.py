"""Pure decisions: facts, settings, `now_ms` and a random source in; a value that says what to do out.

Belongs here: everything that decides. Does not belong here: reading or writing anything. No clock, no Redis, no
asyncio; import-linter holds that. The same functions run in the services, in the World and in the forecast.
"""
