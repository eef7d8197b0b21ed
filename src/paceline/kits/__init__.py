"""Small tools that know nothing of the product: clock, randomness, failpoints, supervised tasks, logging,
HTTP serving.

What belongs here would be just as useful in another program. Anything that knows what a phone, a job or a
task is belongs in `domain`, whatever its size. Imports nothing of ours.
"""
