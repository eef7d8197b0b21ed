"""`paceline up`: Redis, the services and the workers as separate processes on one machine, watched and
restarted.

Belongs here: starting, watching and stopping processes, and what a first run needs (a data directory,
generated keys, simulated numbers). Does not belong here: anything a service does. The launcher talks to the
services over their HTTP interfaces like any other client and imports none of them, and it is not needed where
something else starts the processes (systemd, containers).

    errors.py        what can go wrong in a way its user can do something about
    data.py          the data directory: who lies where, the lock
    children.py      one supervised child process
    redis_binary.py  which server the embedded Redis is
    redis_server.py  how it is run
    preflight.py     what is refused before anything runs
    services.py      the command and environment of each process
    workers.py       ends the workers that the orchestrator could not end itself
    fake_whatsapp.py the fake WhatsApp for Node workers, and who scans their codes there
    client.py        the HTTP calls the launcher makes
    remote.py        what a command asks a running gateway, wherever it is
    up.py            the composition: start in order, say `ready`, stop in reverse
    demo.py          `paceline demo`: the same, and a job with a progress bar
"""
