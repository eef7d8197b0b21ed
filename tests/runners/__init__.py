"""Workers as running programs: the provisioner over a real Redis and a fake runner, and the runners themselves.

`suite.py` is what every runner has to do; the fake passes it like the real ones (tests/docker has the one on Docker).
"""
