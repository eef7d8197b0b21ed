"""The store's scripts on real Redis, on both servers: every return code, every race that matters, every repeated call.

Belongs here: what one verb does to the keys, and what holds whatever order verbs come in. Does not belong here:
decisions (tests/policy) and whole runs (tests/sim).
"""
