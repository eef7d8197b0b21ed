"""Paceline sends WhatsApp messages through a fleet of an organisation's own numbers, each at its own pace.

The data flows down this list:

    domain         values, ids, states and their transition tables, the error tree
    policy         pure decisions: facts, settings, now and a random source in, a decision out
    store          the whole keyspace and one Lua script per verb; the only package that imports redis
    gateway        the public API: authenticate, validate, accept
    dispatcher     jobs to phone queues (routing), phone queues to outboxes (pacing)
    orchestrator   sessions, outboxes, worker webhooks, settling
    worker         one session: the protocol client, its journal, its drivers
    client         the public gateway for Python programs; stands alone
    launcher       `paceline up`: all of the above as processes on one machine
    testing        fakes and the World, the whole platform in virtual time
    kits           small tools that know nothing of the product: clock, rng, tasks, logging

`settings` is read by every entry point, `cli` is the entry point of them all. Services never import each
other: they meet in Redis and over HTTP. import-linter holds the layers, in `make check`.
"""

__version__ = "0.1.0"
