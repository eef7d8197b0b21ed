"""Sessions and their workers: the registry, the outbox protocol with its last gate, and what workers report.

Belongs here: everything a worker talks to. Does not belong here: pacing and routing (`dispatcher`), rules (`policy`),
Redis (`store`).
"""
