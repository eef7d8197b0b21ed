"""A draft says what is wrong with it, and becomes the call the gateway takes."""

import pytest

from paceline.client import requests_sending as sending
from paceline.dashboard.audience import read_text
from paceline.dashboard.draft import Draft

TABLE = "to,name\n447700900301,Ada\n"


def draft(people: str = TABLE, **fields: object) -> Draft:
    return Draft(**{"audience": read_text(people) if people else None, "text": "Hi {{name}}", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        pytest.param(draft(), {}, id="good"),
        pytest.param(draft(""), {"audience": "Nobody to write to yet."}, id="nobody"),
        pytest.param(draft(text=" "), {"text": "Nothing to say yet."}, id="no text"),
        pytest.param(
            draft(text="x" * 4_097), {"text": "4,097 characters; a message has at most 4,096."}, id="too long"
        ),
        pytest.param(
            draft(text="{{city}} {{name}}"),
            {"text": "{{city}} is no column of the list. It has: name."},
            id="no such column",
        ),
        pytest.param(
            draft("447700900301"),
            {"text": "{{name}} has no value: plain numbers bring none. Use a table with such a column."},
            id="numbers have no variables",
        ),
        pytest.param(draft(mode="image"), {"file": "Choose the image to send."}, id="no image"),
        pytest.param(draft(mode="image", media_ref="m", text=""), {}, id="an image needs no words"),
        pytest.param(draft(spread_minutes="soon"), {"spread_minutes": "A whole number up to 43,200."}, id="spread"),
        pytest.param(draft(validity_hours="9999"), {"validity_hours": "A whole number up to 8,760."}, id="validity"),
        pytest.param(draft(spread_minutes="-1"), {"spread_minutes": "A whole number up to 43,200."}, id="negative"),
    ],
)
def test_what_is_wrong(given: Draft, faults: dict[str, str]) -> None:
    assert given.check() is (not faults)
    assert given.faults == faults


def test_a_plain_draft_asks_for_no_more_than_it_says() -> None:
    assert draft().people() == {"csv": TABLE}
    assert draft("447700900301").people() == {"contacts": ("447700900301",)}
    assert draft().options() == {"text": "Hi {{name}}", "priority": 1}


def test_everything_that_can_be_said() -> None:
    full = draft(
        mode="image", media_ref="m1", tags=" spring , sale,", phone="4477", priority="3", send_at=5,
        spread_minutes="60", validity_hours="2",
    )  # fmt: skip
    assert full.options() == {
        "text": "Hi {{name}}", "priority": 3, "mode": "image", "media_ref": "m1", "tags": ["spring", "sale"],
        "phone": "4477", "send_at": 5, "spread_minutes": 60, "validity_seconds": 7_200,
    }  # fmt: skip
    assert sending.plan_job(**full.people(), **full.options()).path == "/v1/jobs/plan"
