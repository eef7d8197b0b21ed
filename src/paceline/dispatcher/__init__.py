"""From accepted jobs to paced hand-overs: the router fills phone queues, the pacer hands due tasks over, the scheduler
brings back what waited.

Belongs here: gathering facts, asking the policy, applying its answer; the loops and the dispatcher's HTTP. Does not
belong here: rules (`policy`), Redis (`store`). Any number of dispatchers may run at once.
"""
