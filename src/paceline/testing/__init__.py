"""The whole platform in one process and in virtual time: the World. Shipped, because users test their campaigns with
it too.

The real policies, the real Lua on a real Redis, the real worker core and the simulated WhatsApp; only clocks, sockets
and HTTP are replaced. One seed decides everything: who runs next, what crashes, which reply is lost. The same seed
gives the same run.

Belongs here: the scheduler (`sim`), the platform put together (`world`), what happens in a run (`scenario`), the judges
(`checkers`). The judges read the ledger and the API, never our own counters. Does not belong here: anything production
needs.
"""
