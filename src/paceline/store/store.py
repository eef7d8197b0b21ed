"""The store as services see it: one object with a group of verbs each for jobs, pacers, outboxes, sessions and
guards."""

from paceline.store.alerts import AlertBook
from paceline.store.audit import AuditTrail
from paceline.store.caller import Caller
from paceline.store.client import Link
from paceline.store.courses import Courses
from paceline.store.events import Events
from paceline.store.fleet import FleetStore
from paceline.store.guards import Guards
from paceline.store.handing import Handing
from paceline.store.inventory import InventoryStore
from paceline.store.jobs import Jobs
from paceline.store.letters import Letters
from paceline.store.lists import Lists
from paceline.store.measure import Measure
from paceline.store.media import MediaBook
from paceline.store.operators import Operators
from paceline.store.outbox import Outbox
from paceline.store.pacers import Pacers
from paceline.store.people import People
from paceline.store.queues import Queues
from paceline.store.rounds import Rounds
from paceline.store.scripts import ScriptConfig
from paceline.store.sessions import Sessions
from paceline.store.tallies import Tallies
from paceline.store.watch import WatchStore
from paceline.store.webhooks import Webhooks


class Store:
    def __init__(
        self, link: Link, config: ScriptConfig | None = None, *, mutate: dict[str, tuple[str, str]] | None = None
    ) -> None:
        config = config or ScriptConfig()
        caller = Caller(link, config, mutate=mutate)
        self.jobs = Jobs(caller)
        self.rounds = Rounds(caller)
        self.courses = Courses(caller)
        self.tallies = Tallies(caller)
        self.pacers = Pacers(caller, config)
        self.outbox = Outbox(caller, config)
        self.handing = Handing(caller)
        self.sessions = Sessions(caller)
        self.fleet = FleetStore(caller)
        self.inventory = InventoryStore(caller)
        self.watch = WatchStore(caller)
        self.guards = Guards(caller)
        self.lists = Lists(caller)
        self.media = MediaBook(caller)
        self.operators = Operators(caller)
        self.people = People(caller)
        self.letters = Letters(caller)
        self.queues = Queues(caller)
        self.events = Events(caller, config.events_kept)
        self.webhooks = Webhooks(caller)
        self.alerts = AlertBook(caller)
        self.audit = AuditTrail(caller)
        self.measure = Measure(caller)
