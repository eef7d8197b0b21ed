"""Chaos: the real platform, as processes on a real Redis, hurt at random under load. `make chaos` runs it as long as
one likes, `test_chaos` with one fault of each kind.

    disk.py      the data directory on a filesystem of its own, which can be full or lose its power
    faults.py    what can be done to a platform, and what a seed draws of it
    load.py      jobs that keep it busy, and probes that show when it is well again
    run.py       one run: hurt it, wait, judge
    __main__.py  the command

What has to hold is judged by `acceptance.checkers`, from the ledger of the simulated WhatsApp, which lies outside the
data directory: no power cut makes WhatsApp forget.
"""
