"""The table of a session's life: every row as the reference has it, and the one word derived from the fields."""

import itertools

import pytest

from paceline.domain.sessions import (
    DRAWN,
    OTHER,
    TABLE,
    WAHA,
    WISHES,
    Authorisation,
    Connection,
    Status,
    disconnected,
    leads_to,
    reconnects,
    status,
)

QUARANTINE = ("FAILED", "LOGGED_OUT")
CODES = [
    (401, "", *QUARANTINE, "LOGGED_OUT"),
    (402, "", *QUARANTINE, "BANNED_402"),
    (403, "", *QUARANTINE, "BANNED_403"),
    (406, "", *QUARANTINE, "BANNED_406"),
    (405, "", "FAILED", None, None),
    (409, "", "FAILED", None, None),
    (411, "", "FAILED", None, None),
    (411, "WRONG_NUMBER", "FAILED", "UNLINKED", None),
    (440, "", "FAILED", None, None),
    (408, "QR_ENDED", "FAILED", None, None),
    (408, "", "RECONNECTING", None, None),
    (428, "", "RECONNECTING", None, None),
    (429, "", "RECONNECTING", None, None),
    (500, "", "RECONNECTING", None, None),
    (503, "", "RECONNECTING", None, None),
    (515, "", "RECONNECTING", None, None),
    (516, "", "RECONNECTING", None, None),
    (None, "", "RECONNECTING", None, None),
]


@pytest.mark.parametrize(("code", "reason", "connection", "authorisation", "quarantine"), CODES)
def test_each_disconnect_code_has_its_rule(
    code: int | None, reason: str, connection: str, authorisation: str | None, quarantine: str | None
) -> None:
    """Banned and logged out: quarantine. Replaced, outdated: down, without an alarm about the number. Else: again."""
    change = disconnected(code, reason)
    assert (change.connection, change.authorisation, change.quarantine) == (connection, authorisation, quarantine)
    assert (change.failed is not None) == (connection == "FAILED")
    assert reconnects(code or 0, reason) == (connection == "RECONNECTING")


def test_no_rule_stands_untested() -> None:
    tested = {f"DISCONNECTED {code} {reason}".strip() for code, reason, *_ in CODES}
    assert {name for name in TABLE if name.startswith("DISCONNECTED ")} - {OTHER} <= tested


@pytest.mark.parametrize("name", [*TABLE])
def test_every_row_is_consistent(name: str) -> None:
    """What stops a session for good says why; what wants a worker says that it starts; a new worker is wanted."""
    change = TABLE[name]
    assert change.why
    assert (change.connection is Connection.FAILED) == (change.failed is not None)
    assert change.quarantine is None or change.failed == change.quarantine
    # Somebody hears of all that stops a session, but of a code that nobody scanned: whoever links it looks at it.
    assert change.alarm == (change.failed is not None and change.quarantine is None and change.failed != "QR_ENDED")
    assert (change.connection is Connection.STARTING) == change.new_worker
    assert (change.desired == "stopped") == (change.connection is Connection.STOPPED)


@pytest.mark.parametrize(("start", "name", "end"), DRAWN)
def test_what_is_drawn_is_true(start: str, name: str, end: str) -> None:
    assert leads_to(name, end)
    assert start in set(Connection)


def test_every_wish_stands_in_the_table() -> None:
    assert set(WISHES) <= set(TABLE)


RESTRICTIONS = ("NONE", "COOLDOWN", "TIME_LOCKED", "CAPPED", "QUARANTINED")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "WORKING"),
        ({"paused": True}, "PAUSED"),
        ({"restriction": "TIME_LOCKED"}, "RESTRICTED"),
        ({"restriction": "COOLDOWN", "paused": True}, "PAUSED"),
        ({"restriction": "QUARANTINED", "connection": "FAILED", "authorisation": "LOGGED_OUT"}, "QUARANTINED"),
        ({"connection": "STOPPED", "authorisation": "LOGGED_OUT"}, "LOGGED_OUT"),
        ({"connection": "FAILED", "authorisation": "LINK_BLOCKED"}, "LINK_BLOCKED"),
        ({"connection": "FAILED"}, "FAILED"),
        ({"connection": "STOPPED", "paused": True}, "STOPPED"),
        ({"connection": "SCAN_QR", "authorisation": "UNLINKED"}, "SCAN_QR"),
        ({"connection": "RECONNECTING", "restriction": "CAPPED"}, "RECONNECTING"),
        ({"connection": "STARTING", "removing": True}, "REMOVING"),
    ],
)
def test_the_derived_word(fields: dict[str, str | bool], word: str) -> None:
    usual = {
        "connection": "CONNECTED", "authorisation": "LINKED", "restriction": "NONE", "paused": False, "removing": False,
    }  # fmt: skip
    assert status(**{**usual, **fields}) == word  # type: ignore[arg-type]


def test_there_is_a_word_for_everything_and_a_name_of_wahas_for_every_word() -> None:
    words = {
        status(connection=connection, authorisation=authorisation, restriction=kind, paused=paused, removing=removing)
        for connection, authorisation, kind, paused, removing in itertools.product(
            Connection, Authorisation, RESTRICTIONS, (False, True), (False, True)
        )
    }
    assert words == set(Status)
    assert set(WAHA) == set(Status)
    assert set(WAHA.values()) == {"STOPPED", "STARTING", "SCAN_QR_CODE", "WORKING", "FAILED"}
