"""Runners: the ways a worker becomes a running program. One interface, in `base`.

Belongs here: starting, seeing, stopping and clearing away workers on one engine each. Does not belong here: which
worker should run, which is `policy.reconcile`'s to decide and `orchestrator.provisioner`'s to carry out.

    base.py      the interface, what a worker is told, the errors
    process.py   processes on this machine, which outlive the orchestrator and are found again
    docker.py    one container each, through the engine's API
    container.py what such a container is made of
    external.py  somebody else starts them
"""
