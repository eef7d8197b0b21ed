"""audit, incident's stream, note_incident, hold_lease, save_alerts, trim_audit: each answer, repeats and races."""

import msgspec
import pytest

from paceline.store import keys

from .stage import PHONE, SESSION, T0, Stage, value_of

CANARY = "proxy-password-canary"


def facts(stage: Stage) -> list[tuple[str, dict[str, object]]]:
    found = value_of(stage.store.audit.after("0-0", limit=100)).items
    return [(fact.kind, fact.fields) for fact in found]


def with_audit(stage: Stage, call: str) -> Stage:
    """A stage whose `note_incident` writes a fact instead: the step is a library's, no verb of its own."""
    return Stage(stage.redis, {"note_incident.lua": ("incident(a.kind, a.now, a.fields)", call)})


@pytest.mark.parametrize(
    ("url", "host"),
    [
        pytest.param(f"http://user:{CANARY}@10.0.0.1:8080", "10.0.0.1", id="http with credentials"),
        pytest.param(f"socks5h://user:{CANARY}@proxy.example:1080/path", "proxy.example", id="socks, with a path"),
        pytest.param(f"http://u:p%40{CANARY}@x@10.0.0.2:1", "10.0.0.2", id="an at sign in the password"),
        pytest.param(f"http://u:{CANARY}@[2001:db8::1]:8080", "[2001:db8::1]", id="IPv6"),
        pytest.param("https://proxy.example", "proxy.example", id="no port"),
        pytest.param("10.0.0.3:3128", "10.0.0.3", id="no scheme"),
        pytest.param("", "", id="none"),
    ],
)
def test_of_a_proxy_only_the_host_comes_into_the_trail(stage: Stage, url: str, host: str) -> None:
    told = with_audit(stage, "audit('BINDING', a.now, a.fields)")
    value_of(told.store.alerts.note("x", {"proxy": url, "sessionId": "s1"}, now_ms=T0))
    assert facts(told) == [("BINDING", {"proxy": host, "sessionId": "s1"})]
    assert CANARY not in str(stage.redis.xrange(keys.audit()))


def test_a_url_under_another_name_loses_its_credentials_too(stage: Stage) -> None:
    told = with_audit(stage, "audit('OPERATOR', a.now, a.fields)")
    fields = {"from": f"http://u:{CANARY}@10.0.0.1:80", "note": "see http://example.org/a@b"}
    value_of(told.store.alerts.note("x", fields, now_ms=T0))
    assert facts(told) == [("OPERATOR", {"from": "10.0.0.1", "note": "see http://example.org/a@b"})]


def test_a_fact_that_cannot_be_written_leaves_an_incident_and_the_change(stage: Stage) -> None:
    """Somebody else's key of that name: the operator's word still counts."""
    stage.redis.set(keys.audit(), "not a stream")
    value_of(stage.store.operators.pause(True, by="k1", now_ms=T0))
    assert stage.redis.hget(keys.fleet(), "paused") == "1"
    kinds = [msgspec.json.decode(line)["kind"] for line in stage.redis.lrange(keys.incidents(), 0, -1)]
    assert kinds == ["AUDIT_LOST", "FLEET_PAUSED"]


def test_every_operators_decision_is_a_fact_once(stage: Stage) -> None:
    """Each press that changes something; pressed again it changes nothing and is no fact."""
    stage.connect()
    operators = stage.store.operators
    for _ in range(2):
        value_of(operators.pause(True, by="k1", now_ms=T0))
        value_of(operators.stop(True, by="k1", now_ms=T0))
        value_of(operators.toggle_guard(False, setting=True, by="k1", now_ms=T0))
        stage.call("set_rpm", session=SESSION, rpm=5, exceedsTrust=False, by="k1", now=T0)
        stage.call("set_pacer", session=SESSION, set={"rpm": 3}, remove=[], by="k1", now=T0)
    value_of(operators.pause(False, by="k2", now_ms=T0))
    done = [(fields["action"], fields["by"]) for _, fields in facts(stage) if fields.get("by") in ("k1", "k2")]
    pressed = ["pause_fleet", "stop_fleet", "toggle_guard", "set_rpm", "set_pacer"]
    assert done == [*((action, "k1") for action in pressed), ("resume_fleet", "k2")]


def test_what_is_given_up_is_one_incident_of_its_own(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.fail(task)
    stage.fail(task)
    found = value_of(stage.store.alerts.after("0-0", limit=100)).items
    given_up = [incident.fields for incident in found if incident.kind == "MESSAGE_GIVEN_UP"]
    about = {"taskId": task, "phone": PHONE, "sessionId": SESSION, "code": "NOT_ON_WHATSAPP"}
    assert given_up == [{"kind": "MESSAGE_GIVEN_UP", "at": T0, **about}]


def test_a_retry_is_not_given_up(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.retry(task)
    found = value_of(stage.store.alerts.after("0-0", limit=100)).items
    assert [incident.kind for incident in found] == ["SEND_FAILED"]


def test_incidents_come_page_by_page_and_strangers_are_passed_over(stage: Stage) -> None:
    alerts = stage.store.alerts
    for number in range(3):
        value_of(alerts.note("K", {"n": number}, now_ms=T0 + number))
        stage.redis.xadd(keys.incident_stream(), {"junk": "x"})
    first = value_of(alerts.after("0-0", limit=4))
    assert [incident.fields["n"] for incident in first.items] == [0, 1]
    rest = value_of(alerts.after(first.place, limit=4))
    assert [incident.fields["n"] for incident in rest.items] == [2]
    assert value_of(alerts.after(rest.place, limit=4)).items == []
    assert not first.behind


def test_a_place_of_another_redis_is_forgotten(stage: Stage) -> None:
    """A Redis that was emptied or restored has entries that are older than the place; they are all news."""
    alerts = stage.store.alerts
    value_of(alerts.note("K", {}, now_ms=T0))
    ahead = "99999999999999-0"
    assert len(value_of(alerts.after(ahead, limit=9)).items) == 1
    stage.redis.xadd(keys.audit(), {"k": "OPERATOR", "at": "1", "d": "{}"})
    found = value_of(stage.store.audit.after(ahead, limit=9))
    assert (len(found.items), found.restarted) == (1, True)


class TestLease:
    def hold(self, stage: Stage, holder: str, *, after_ms: int = 0) -> bool:
        return value_of(stage.store.alerts.hold(holder, now_ms=T0 + after_ms, ttl_ms=1_000))

    def save(self, stage: Stage, holder: str, cursor: str = "1-0") -> bool:
        return value_of(stage.store.alerts.save(holder, cursor, b"{}", now_ms=T0, ttl_ms=1_000))

    def test_one_holds_it_and_keeps_it_by_saying_so(self, stage: Stage) -> None:
        assert self.hold(stage, "a")
        assert not self.hold(stage, "b")
        assert self.hold(stage, "a", after_ms=900)
        assert not self.hold(stage, "b", after_ms=1_800)

    def test_who_says_nothing_loses_it(self, stage: Stage) -> None:
        assert self.hold(stage, "a")
        assert self.hold(stage, "b", after_ms=1_000)
        assert not self.hold(stage, "a", after_ms=1_500)

    def test_who_died_before_the_clock_was_set_back_loses_it(self, stage: Stage) -> None:
        """Its end is an hour away by the new clock; nobody provisioned, watched or alerted until then."""
        assert self.hold(stage, "a")
        assert not self.hold(stage, "b", after_ms=-3_600_000)
        assert not self.hold(stage, "b", after_ms=-3_600_000 + 999)
        assert self.hold(stage, "b", after_ms=-3_600_000 + 1_000)
        assert not self.hold(stage, "c", after_ms=-3_600_000 + 1_500)

    def test_who_lives_on_by_a_clock_that_stands_still_keeps_it(self, stage: Stage) -> None:
        """Two would do the work, one by each clock."""
        for second in range(10):
            assert self.hold(stage, "a")
            assert not self.hold(stage, "b", after_ms=-3_600_000 + second * 1_000)

    def test_who_gave_it_back_before_the_clock_was_set_back_has_it_no_longer(self, stage: Stage) -> None:
        value_of(stage.store.alerts.hold("a", now_ms=T0, ttl_ms=0))
        assert not self.hold(stage, "b", after_ms=-3_600_000)
        assert self.hold(stage, "b", after_ms=-3_600_000)

    def test_only_the_holder_saves_and_the_lease_goes_on(self, stage: Stage) -> None:
        assert not self.save(stage, "a")
        self.hold(stage, "a")
        assert self.save(stage, "a")
        assert self.save(stage, "a")
        assert not self.save(stage, "b", "2-0")
        kept = value_of(stage.store.alerts.kept())
        assert (kept.cursor, kept.memory) == ("1-0", b"{}")

    def test_nothing_is_kept_at_first(self, stage: Stage) -> None:
        kept = value_of(stage.store.alerts.kept())
        assert (kept.cursor, kept.memory) == ("0-0", None)


def test_what_was_copied_is_freed_and_nothing_else(stage: Stage) -> None:
    ids = [stage.redis.xadd(keys.audit(), {"k": "OPERATOR", "at": "1", "d": "{}"}) for _ in range(3)]
    trail = stage.store.audit
    for _ in range(2):
        value_of(trail.trim(str(ids[1])))
        assert [fact.id for fact in value_of(trail.after("0-0", limit=9)).items] == [ids[2]]


def test_both_streams_are_bounded(stage: Stage) -> None:
    """In whole blocks of Redis, so some more are kept."""
    small = with_audit(stage, "for _ = 1, a.fields.n do incident('K', a.now, {}) audit('OPERATOR', a.now, {}) end")
    for _ in range(12):
        value_of(small.store.alerts.note("x", {"n": 1_000}, now_ms=T0))
    assert 10_000 <= int(stage.redis.xlen(keys.incident_stream())) < 10_200
    assert int(stage.redis.xlen(keys.audit())) == 12_000


def test_a_stream_that_was_full_says_so(stage: Stage) -> None:
    small = with_audit(stage, "for _ = 1, a.fields.n do incident('K', a.now, {}) end")
    value_of(small.store.alerts.note("x", {"n": 1}, now_ms=T0))
    place = value_of(stage.store.alerts.after("0-0", limit=1)).place
    for _ in range(11):
        value_of(small.store.alerts.note("x", {"n": 1_000}, now_ms=T0))
    assert value_of(stage.store.alerts.after(place, limit=1)).behind
