"""Ways to WhatsApp. Each driver turns one session's connection into the port and the events of `base`.

What belongs here: everything that knows how a particular service talks. What does not: when to send, what to
report, what to remember; that is the worker's core, the same for every driver.
"""
