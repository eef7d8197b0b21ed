"""Nothing secret leaves by the log: canaries go in every way we could think of, and none comes out."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from paceline.kits import logging as kit
from paceline.kits.logging import MASK, configure_logging, redact, register_secret
from paceline.kits.secrets import new_key

KEY = "canary-api-key-5f3a9c1e"
TEXT = "canary text: meet me at noon"
PROXY = "socks5h://user:canary-proxy-pass@proxy.example:1080"
CANARIES = (KEY, "canary-", "canary text", "447700900123", "noon")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A configured log that is put back afterwards, for the sake of other tests in this process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    written = io.StringIO()
    configure_logging("test", "debug", secrets=(KEY, None, "abc"), stream=written)
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)
    kit._known_secrets.clear()
    kit._redact_short.cache_clear()
    structlog.reset_defaults()


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        pytest.param("api_key", "x", MASK, id="snake case"),
        pytest.param("apiKey", "x", MASK, id="camel case"),
        pytest.param("X-API-KEY", "x", MASK, id="header"),
        pytest.param("authorization", {"a": "x"}, MASK, id="whatever is in it"),
        pytest.param("webhook_secret", None, None, id="nothing to hide"),
        pytest.param("text", "four", "[4 characters]", id="text"),
        pytest.param("to", "447700900123", "…0123", id="recipient"),
        pytest.param("phone", 447700900123, "…0123", id="number as integer"),
        pytest.param("from", "447700900123@s.whatsapp.net", "…0123", id="chat address"),
        pytest.param("to", "123", MASK, id="too short to show any of it"),
        pytest.param("count", 3, 3, id="plain number"),
        pytest.param("url", PROXY, f"socks5h://{MASK}@proxy.example:1080", id="credentials in a URL"),
        pytest.param("url", "http://u:p@ss@h/x", f"http://{MASK}@h/x", id="at sign in a password"),
        pytest.param("note", "Bearer abc.def", f"Bearer {MASK}", id="bearer token"),
        pytest.param("note", "{'x-api-key': 'abc'}", f"{{'x-api-key': {MASK}", id="headers as a string"),
        pytest.param("note", "to 447700900123@c.us", "to …0123@c.us", id="chat address in a string"),
        pytest.param("body", [{"text": "four"}], [{"text": "[4 characters]"}], id="nested"),
    ],
)
def test_each_field_is_shown_as_far_as_it_may_be(field: str, value: object, shown: object) -> None:
    assert redact(value, field) == shown


def test_our_lines_hold_no_canary(stream: io.StringIO) -> None:
    log = structlog.stdlib.get_logger("paceline.test")
    log.info(f"starting with {KEY}", api_key=KEY, proxy=PROXY, task={"to": "447700900123", "text": TEXT})
    try:
        raise ValueError(f"refused {KEY}")
    except ValueError:
        log.exception("failed", caption=TEXT)
    _assert_clean(stream, lines=2)


def test_lines_of_libraries_take_the_same_way(stream: io.StringIO) -> None:
    logging.getLogger("some.library").warning("GET %s with %s", PROXY, KEY)
    _assert_clean(stream, lines=1)


def test_a_line_is_json_with_level_time_and_service(stream: io.StringIO) -> None:
    structlog.stdlib.get_logger("paceline.test").warning("hello", attempt=2)
    line = json.loads(stream.getvalue())
    assert line | {"at": ""} == {
        "at": "",
        "attempt": 2,
        "event": "hello",
        "level": "warning",
        "logger": "paceline.test",
        "service": "test",
    }


def _assert_clean(stream: io.StringIO, *, lines: int) -> None:
    written = stream.getvalue()
    assert len([json.loads(line) for line in written.splitlines()]) == lines
    assert [canary for canary in CANARIES if canary in written] == []


def test_an_api_key_is_recognised_by_its_prefix_wherever_it_turns_up() -> None:
    """Keys that callers hold are not known to this process by their value."""
    key = new_key("pk_")
    assert key not in str(redact({"event": f"odd header {key}, dropped", "items": [key]}))


@pytest.mark.usefixtures("stream")
def test_a_secret_that_is_known_from_now_on_is_blanked_in_what_was_said_before() -> None:
    """Short strings are remembered as they were shown; a new secret makes that worthless."""
    assert redact("token zebra-quartz-7") == "token zebra-quartz-7"
    register_secret("zebra-quartz-7")
    assert redact("token zebra-quartz-7") == f"token {MASK}"
