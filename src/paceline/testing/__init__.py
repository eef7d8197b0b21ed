"""The whole platform in one process and in virtual time: the World. Shipped, because users test their campaigns with
it too.

The real policies, the real Lua on a real Redis, the real worker core and the simulated WhatsApp; only clocks, sockets
and HTTP are replaced. One seed decides everything: who runs next, what crashes, which reply is lost. The same seed
gives the same run.

Belongs here: the scheduler (`sim`, `steps`), the platform put together (`world`, `workers`, `ports`, `posting`), what
happens in a run (`scenario`, `around`, `quiet`, `drills`, `presses`) and who does it (`people`, `operators`), what is
around the messages (`words`, `customers`, `fleet`, `files`), what people know (`outside`), the judges (`checkers`,
`judges_*`), the bugs they must see (`planted`), and what runs it all over many seeds (`prove`, `servers`, `report`,
`regressions`) or for a month (`soak`). The judges read the ledger, the API and what people outside know, never our own
counters. Does not belong here: anything production needs.
"""
