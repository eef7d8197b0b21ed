"""The words of Paceline: values, ids, states with their transition table, reasons, failures and the error tree.

Belongs here: what a thing *is*, and what follows from it alone. Does not belong here: decisions (`policy`), storage
(`store`), clocks, randomness, I/O. Imports nothing else of ours.
"""
