"""The worker: the program that holds one session and sends its messages, each under one message id.

What belongs here: the client side of the worker protocol, the journal that makes a repeated delivery harmless,
and the drivers that speak to WhatsApp. What does not: pacing, caps, hours, retries. The orchestrator decides
whether a task may go; the worker decides only whether it is still inside the window it was given, and whether
this message may already have gone out.

    main ──► core ──► sender ──► drivers/…            one task: wait, type, write, wait for the server's ack
              │  └──► recovery                        what an earlier life of this worker left unanswered
              ├──► pump ──► poster ──► protocol       driver events → our own knowledge → webhooks
              └──► reporter ──► protocol              verdicts, repeated until the orchestrator answers
    journal ◄── all of them                           what was intended, what came of it, what was told

`core`, `sender`, `recovery`, `pump`, `poster` and `reporter` await nothing but their ports (protocol, driver, journal,
clock, wake) and hold no `finally` that acts, so the World can step them by hand and drop them between any two awaits,
as a power cut does.
"""
