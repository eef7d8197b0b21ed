"""What the machines of an operator see: the metrics of each service, and their `/metrics`.

Belongs here: the names of all metrics (`catalogue`), what is read of the store when somebody asks (`fleet`), how calls
to Redis (`link`) and HTTP requests are timed, and the route (`service`). Does not belong here: what one service counts
of its own work, which is its `measures`; what operators read themselves, which is the dashboard's.
"""
