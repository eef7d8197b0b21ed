"""The whole platform as a user runs it, judged from outside.

Real processes (`paceline up`), a real Redis, real signals. What went out is what the simulated WhatsApp wrote into its
ledger; everything else is asked over the public API, or read from the Redis keys that SPEC §9 promises to other tools.
Nothing of `paceline` is imported here, so no counter and no rule of ours can judge itself.

    platform.py   starts, hurts and stops one platform
    api.py        what a client of it does: posting, asking, waiting
    checkers.py   the promises of SPEC §11 as functions of what was found
"""
