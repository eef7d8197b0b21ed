"""The suppression list as CSV: bad rows by line, the rest stored; an export that opens safely and comes back."""

import csv
import io
from typing import Any

import httpx
import pytest

from paceline.kits.web import MEGABYTE

from .platform import FRIEND, NOON, READ_KEY, SEND_KEY, Platform, refused

PATH = "/v1/suppressions"


async def upload(platform: Platform, body: str | bytes, **headers: str) -> httpx.Response:
    content = body.encode() if isinstance(body, str) else body
    return await platform.gateway.post(PATH, content=content, headers={"Content-Type": "text/csv", **headers})


async def export(platform: Platform, **params: str) -> list[list[str]]:
    answer = await platform.gateway.get(PATH, headers={"Accept": "text/csv"}, params=params)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8"), answer.text
    return list(csv.reader(io.StringIO(answer.text)))


async def test_rows_are_stored_and_bad_ones_named_by_their_line(platform: Platform) -> None:
    body = (
        "to,reason\r\n"
        f"+{FRIEND},asked\r\n"
        "nobody,\r\n"
        "\r\n"
        f'{FRIEND},"again,\r\nin two lines"\r\n'
        "447911123456\r\n"
        f"447911123457,{'x' * 257}\r\n"
        "447911123458,a,b\r\n"
        "=1+1,\r\n"
    )
    answer = await upload(platform, body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "added": 2,
        "duplicates": 1,
        "rejected": [
            {"line": 3, "to": "nobody", "code": "INVALID_NUMBER"},
            {"line": 8, "to": "447911123457", "code": "FIELD_TOO_LONG"},
            {"line": 9, "to": "447911123458", "code": "TOO_MANY_COLUMNS"},
            {"line": 10, "to": "=1+1", "code": "INVALID_NUMBER"},
        ],
    }
    rows = await export(platform)
    assert rows == [
        ["to", "at", "reason", "source"],
        ["447911123456", str(NOON), "", "bootstrap"],
        [FRIEND, str(NOON), "asked", "bootstrap"],
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"\ufeffto\n{FRIEND}\n", id="a byte order mark, one column"),
        pytest.param(f"to;reason\n{FRIEND};x\n", id="semicolons"),
        pytest.param(f"reason\tto\nx\t{FRIEND}\n", id="tabs, the other way round"),
        pytest.param(f'"to","reason"\n"{FRIEND}","x"', id="quotes, no line break at the end"),
        pytest.param(f"to,at,reason,source\n{FRIEND},1,x,y\n", id="our own export"),
        pytest.param("to\n+972 (0) 52-987-6543\n", id="a trunk 0 that was kept"),
    ],
)
async def test_what_spreadsheets_write_is_read(platform: Platform, body: str) -> None:
    assert (await upload(platform, body)).json() == {"added": 1, "duplicates": 0, "rejected": []}
    answer = await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "hello"})
    refused(answer, 422, "SUPPRESSED", "to")


@pytest.mark.parametrize(
    ("body", "field", "line"),
    [
        pytest.param("", "to", 1, id="nothing"),
        pytest.param(f"{FRIEND}\n", "to", 1, id="no header"),
        pytest.param("to,to\n", "to", 1, id="a column twice"),
        pytest.param(f"to,why\n{FRIEND},x\n", "why", 1, id="a column we do not know"),
        pytest.param(b"to\n\xff\n", "body", 2, id="no UTF-8"),
        pytest.param(f'to,reason\n{FRIEND},"x\n', "body", 2, id="a quote without an end"),
        pytest.param("to\n" + f"{FRIEND}\n" * 100_001, "body", 100_002, id="too many rows"),
    ],
)
async def test_a_file_that_cannot_be_read_stores_nothing(
    platform: Platform, body: str | bytes, field: str, line: int
) -> None:
    async with platform.nothing_stored():
        error = refused(await upload(platform, body), 400, "INVALID_CSV", field)
    assert error["details"]["line"] == line


async def test_another_charset_is_refused(platform: Platform) -> None:
    answer = await upload(platform, "to\n", **{"Content-Type": "text/csv; charset=utf-16"})
    refused(answer, 400, "INVALID_CSV", "Content-Type")


async def test_a_hundred_thousand_rows_go_in_and_come_out(platform: Platform) -> None:
    people = [str(972_500_000_000 + i) for i in range(100_000)]
    answer = await upload(platform, "to\n" + "\n".join(people))
    assert answer.json() == {"added": 100_000, "duplicates": 0, "rejected": []}
    assert (await upload(platform, "to\n" + "\n".join(people[:10]))).json()["duplicates"] == 10
    rows = await export(platform)
    assert [row[0] for row in rows[1:]] == people


@pytest.mark.parametrize("reason", ["=HYPERLINK(0)", "+1", "-1", "@x", "\tx", "  =1", "\r=1"])
async def test_an_export_holds_no_formula(platform: Platform, reason: str) -> None:
    await platform.gateway.post(PATH, json={"to": FRIEND, "reason": reason})
    assert (await export(platform))[1][2] == f"'{reason}"


async def test_an_export_may_begin_anywhere_and_needs_the_read_scope(platform: Platform) -> None:
    await platform.gateway.post(PATH, json={"to": [FRIEND, "447911123456"]})
    assert [row[0] for row in (await export(platform, cursor="447911123456"))[1:]] == [FRIEND]
    for key, status in ((READ_KEY, 200), (SEND_KEY, 403), ("wrong", 401)):
        answer = await platform.gateway.get(PATH, headers={"Accept": "text/csv", "X-API-KEY": key})
        assert answer.status_code == status
    refused(await platform.gateway.get(f"{PATH}?cursor=x", headers={"Accept": "text/csv"}), 400, "INVALID_REQUEST")


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/csv;q=0.5", "text/html"])
async def test_json_is_the_answer_unless_csv_is_asked_for(platform: Platform, accept: str) -> None:
    assert (await platform.gateway.get(PATH, headers={"Accept": accept})).json()["items"] == []


async def test_the_other_notation_of_a_number_is_the_same_person(platform: Platform) -> None:
    """With the trunk 0 kept, as some address books have it: on the list, off the list and asked either way."""
    trunk = f"9720{FRIEND[3:]}"
    for given, asked in ((FRIEND, trunk), (trunk, FRIEND)):
        assert (await platform.gateway.post(PATH, json={"to": given})).json() == {"added": 1}
        assert (await platform.gateway.post(PATH, json={"to": asked})).json() == {"added": 0}
        page: dict[str, Any] = (await platform.gateway.get(PATH)).json()
        assert [item["to"] for item in page["items"]] == [given]
        for to in (given, asked):
            answer = await platform.gateway.post("/api/v1/send", json={"to": to, "message": "hello"})
            refused(answer, 422, "SUPPRESSED", "to")
        assert (await platform.gateway.delete(f"{PATH}/{asked}")).status_code == 200
        assert (await platform.gateway.get(PATH)).json()["items"] == []


async def test_a_long_list_as_json_keeps_its_own_limit(platform: Platform) -> None:
    body = b'{"to": "' + b" " * MEGABYTE + b'"}'
    answer = await platform.gateway.post(PATH, content=body, headers={"Content-Type": "application/json"})
    refused(answer, 413, "BODY_TOO_LARGE")
