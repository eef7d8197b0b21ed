"""The store as services see it: one object with a group of verbs each for jobs, pacers, outboxes, sessions and
guards."""

from paceline.store.caller import Caller
from paceline.store.client import Link
from paceline.store.guards import Guards
from paceline.store.handing import Handing
from paceline.store.jobs import Jobs
from paceline.store.operators import Operators
from paceline.store.outbox import Outbox
from paceline.store.pacers import Pacers
from paceline.store.queues import Queues
from paceline.store.scripts import ScriptConfig
from paceline.store.sessions import Sessions


class Store:
    def __init__(
        self, link: Link, config: ScriptConfig | None = None, *, mutate: dict[str, tuple[str, str]] | None = None
    ) -> None:
        caller = Caller(link, config or ScriptConfig(), mutate=mutate)
        self.jobs = Jobs(caller)
        self.pacers = Pacers(caller)
        self.outbox = Outbox(caller)
        self.handing = Handing(caller)
        self.sessions = Sessions(caller)
        self.guards = Guards(caller)
        self.operators = Operators(caller)
        self.queues = Queues(caller)
