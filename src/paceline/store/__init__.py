"""The only package that knows Redis. It speaks the domain (`claim_due`, `settle_task`), never Redis commands.

Belongs here: the keyspace (`keys`), the Lua verbs (`lua/`), how a script is called (`scripts`, `client`) and one
module per group of verbs. Does not belong here: decisions, clocks, HTTP. Every change of state is one script,
idempotent by id, with `now` as an argument.
"""
