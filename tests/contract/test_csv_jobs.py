"""POST /v1/jobs with the contacts as CSV; and what is said about contacts that cannot be taken."""

import tracemalloc
from contextlib import suppress
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.domain.errors import BadRequest
from paceline.gateway.csv_contacts import Sheet, options
from paceline.gateway.schemas import ContactIn, JobRequest
from paceline.kits.web import Problem

from .platform import DAY_MS, FRIEND, NOON, PHONE, READ_KEY, SESSION, Platform, refused

SHEET = "to,name,city\n+972 52-987-6543,Ada,London\n972529876544,Grace,Arlington\n"


async def post(
    platform: Platform, body: str | bytes, *, headers: dict[str, str] | None = None, **query: Any
) -> httpx.Response:
    content = body.encode() if isinstance(body, str) else body
    params = {"text": "hello", **query}
    return await platform.gateway.post(
        "/v1/jobs", content=content, params=params, headers={"Content-Type": "text/csv", **(headers or {})}
    )


async def accepted(platform: Platform, body: str | bytes, **query: Any) -> dict[str, Any]:
    answer = await post(platform, body, **query)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def contacts(platform: Platform, job: dict[str, Any]) -> list[Any]:
    return msgspec.to_builtins(await platform.store.jobs.contacts(job["jobId"], 0, 1_000))  # type: ignore[no-any-return]


def read(body: bytes) -> BadRequest | list[str | ContactIn]:
    """The contacts of a file, or why there are none."""
    sheet = Sheet(body, {"a", "note"})
    try:
        for _ in sheet.stretches():
            pass
    except BadRequest as refusal:
        return refusal
    return sheet.contacts


class TestReading:
    async def test_columns_are_the_number_and_its_variables(self, platform: Platform) -> None:
        job = await accepted(platform, SHEET, text="Hello {{name}} in {{city}}")
        assert (job["total"], job["accepted"], job["rejected"]) == (2, 2, [])
        assert await contacts(platform, job) == [
            {"to": FRIEND, "vars": {"name": "Ada", "city": "London"}},
            {"to": "972529876544", "vars": {"name": "Grace", "city": "Arlington"}},
        ]

    async def test_client_ref_and_timezone_are_those_fields(self, platform: Platform) -> None:
        sheet = f"clientRef,timezone,to,name\nc1,Europe/Paris,{FRIEND},Ada\n,,972529876544,Grace\n"
        job = await accepted(platform, sheet, text="Hi {{name}}")
        assert await contacts(platform, job) == [
            {"to": FRIEND, "vars": {"name": "Ada"}, "clientRef": "c1", "timezone": "Europe/Paris"},
            {"to": "972529876544", "vars": {"name": "Grace"}},
        ]

    async def test_only_what_the_text_needs_is_kept(self, platform: Platform) -> None:
        """A name is stored with every contact: 200 KB of rows below long names were 130 MB in Redis."""
        long, longest = "x" * 65, "y" * 64
        sheet = f"to,name,{long},{longest},{long}\n{FRIEND},Ada,{'z' * 5_000},1,2\n"
        job = await accepted(platform, sheet, text="Hi {{name}} {{" + longest + "}}")
        assert await contacts(platform, job) == [{"to": FRIEND, "vars": {"name": "Ada", longest: "1"}}]
        job = await accepted(platform, sheet)
        assert await contacts(platform, job) == [{"to": FRIEND}]

    @pytest.mark.parametrize(
        "sheet",
        [
            pytest.param("to;name\n972529876543;Ada, Countess\n", id="semicolons"),
            pytest.param('to,name\n972529876543,"Ada, Countess"\n', id="quotes"),
            pytest.param('"to","name"\r\n"972529876543","Ada, Countess"', id="quotes everywhere, no end of line"),
            pytest.param("\ufeffto;name\r\n972529876543;Ada, Countess\r\n", id="BOM and CRLF"),
            pytest.param(" to ; name ;\n972529876543;Ada, Countess;\n", id="a column without a name"),
            pytest.param("to;name\r972529876543;Ada, Countess\r", id="old line ends"),
            pytest.param("to;name\n\n972529876543;Ada, Countess\n\n\n", id="empty lines"),
        ],
    )
    async def test_the_ways_a_file_is_written(self, platform: Platform, sheet: str) -> None:
        job = await accepted(platform, sheet, text="Dear {{name}}")
        assert await contacts(platform, job) == [{"to": FRIEND, "vars": {"name": "Ada, Countess"}}]
        assert job["total"] == 1

    async def test_values_may_have_lines_quotes_and_any_script(self, platform: Platform) -> None:
        job = await accepted(platform, f'to,name\n{FRIEND},"עדה ""the first""\n👋"\n', text="{{name}}")
        assert (await contacts(platform, job))[0]["vars"] == {"name": 'עדה "the first"\n👋'}

    @pytest.mark.parametrize(
        "kind", ["text/csv; charset=utf-8", 'text/csv;charset="UTF-8"', "text/csv; header=present"]
    )
    async def test_the_charset_may_be_said(self, platform: Platform, kind: str) -> None:
        assert (await post(platform, SHEET, headers={"Content-Type": kind})).status_code == 202

    async def test_all_other_fields_stand_in_the_query(self, platform: Platform) -> None:
        await platform.register()
        send_at = NOON + DAY_MS
        job = await accepted(
            platform, SHEET, sessionId=SESSION, phone=f"+{PHONE}", tags="a, b", strategy="round_robin", priority=3,
            spreadMinutes=10, sendAt=send_at, validitySeconds=3_600, onUnknown="hold", strict="true",
            metadata='{"campaign": {"id": 7}}',
        )  # fmt: skip
        status = (await platform.gateway.get(job["statusUrl"])).json()
        expected = {
            "phone": PHONE, "sessionId": SESSION, "tags": ["a", "b"], "priority": 3, "spreadMinutes": 10,
            "sendAt": send_at, "validitySeconds": 3_600, "onUnknown": "hold", "strategy": "round_robin",
            "metadata": {"campaign": {"id": 7}},
        }  # fmt: skip
        assert {name: status[name] for name in expected} == expected

    async def test_a_time_may_be_iso(self, platform: Platform) -> None:
        job = await accepted(platform, SHEET, sendAt="2026-03-11T12:00:00+02:00")
        assert (await platform.gateway.get(job["statusUrl"])).json()["sendAt"] == NOON + DAY_MS


class TestRejected:
    async def test_bad_rows_are_listed_with_their_index(self, platform: Platform) -> None:
        long = "x" * 4_097
        rows = [
            "to,name,timezone", f"{FRIEND},Ada,", "12,Ada,", "972529876544,Ada,,,more", "972529876545,,",
            "972529876546", ",Ada,", "972529876547,Ada,Mars/Olympus", f"972529876548,{long},", f"+{FRIEND},Ada,",
            f"972529876549,Ada,{'z' * 257}",
        ]  # fmt: skip
        job = await accepted(platform, "\n".join(rows), text="Hi {{name}}")
        assert job["rejected"] == [
            {"index": 1, "to": "12", "code": "INVALID_NUMBER"},
            {"index": 2, "to": "972529876544", "code": "TOO_MANY_COLUMNS"},
            {"index": 3, "to": "972529876545", "code": "MISSING_VARIABLE", "variable": "name"},
            {"index": 4, "to": "972529876546", "code": "MISSING_VARIABLE", "variable": "name"},
            {"index": 5, "to": "", "code": "INVALID_NUMBER"},
            {"index": 6, "to": "972529876547", "code": "INVALID_TIMEZONE"},
            {"index": 7, "to": "972529876548", "code": "FIELD_TOO_LONG", "variable": "name"},
            {"index": 9, "to": "972529876549", "code": "FIELD_TOO_LONG", "variable": "timezone"},
        ]
        assert (job["total"], job["accepted"], job["duplicates"]) == (10, 1, 1)

    async def test_strict_refuses_all(self, platform: Platform) -> None:
        async with platform.nothing_stored():
            answer = await post(platform, SHEET + "12,x,y\n", strict="1")
        error = refused(answer, 422, "CONTACTS_REJECTED", "contacts")
        assert error["details"]["rejected"] == [{"index": 2, "to": "12", "code": "INVALID_NUMBER"}]

    async def test_nothing_accepted_is_a_422(self, platform: Platform) -> None:
        async with platform.nothing_stored():
            refused(await post(platform, "to\n12\n13,x\n"), 422, "NOTHING_ACCEPTED", "contacts")

    async def test_the_variable_is_named_in_json_too(self, platform: Platform) -> None:
        """The first one that is missing, in the order of the alphabet; one with a value, also an empty one, is not."""
        people = [
            {"to": FRIEND, "vars": {"city": ""}},
            {"to": "972529876544", "vars": {"name": "Ada"}},
            "972529876545",
            {"to": "972529876546", "vars": {"name": "Ada", "city": "", "more": "x"}},
        ]
        job = await platform.post_job(contacts=people, text="{{name}} in {{ city }}")
        assert [(item["index"], item["code"], item["variable"]) for item in job["rejected"]] == [
            (0, "MISSING_VARIABLE", "name"),
            (1, "MISSING_VARIABLE", "city"),
            (2, "MISSING_VARIABLE", "city"),
        ]

    async def test_a_single_message_names_its_variable(self, platform: Platform) -> None:
        answer = await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "hi {{name}}"})
        assert refused(answer, 400, "MISSING_VARIABLE", "message")["details"]["variable"] == "name"


@pytest.mark.parametrize("name", ["phone", "Phone number", "WhatsApp", "MSISDN", "phone_number"])
async def test_the_numbers_column_may_be_called_so(platform: Platform, name: str) -> None:
    job = await accepted(platform, f"id;{name};name\n972541111111;{FRIEND};Ada\n", text="Hello {{name}}")
    assert await contacts(platform, job) == [{"to": FRIEND, "vars": {"name": "Ada"}}]


class TestRefused:
    @pytest.mark.parametrize(
        ("body", "code", "field", "line"),
        [
            pytest.param(b"", "INVALID_CSV", "contacts", 1, id="empty"),
            pytest.param(b"\xef\xbb\xbf", "INVALID_CSV", "contacts", 1, id="only a BOM"),
            pytest.param(b"to,name\n", "INVALID_REQUEST", "contacts", None, id="only a header"),
            pytest.param(b"to,name\n\n\n", "INVALID_REQUEST", "contacts", None, id="a header and empty lines"),
            pytest.param(b"972529876543,Ada\n", "INVALID_CSV", "to", 1, id="no header"),
            pytest.param(b"Mobile,972529876543\nAda,972529876544\n", "INVALID_CSV", "to", 1, id="a firm, no header"),
            pytest.param(b"tel,972529876543\n1,2\n", "INVALID_CSV", "to", 1, id="a number as a name"),
            pytest.param(b"id,name\n972529876543,Ada\n", "INVALID_CSV", "to", 1, id="no column of numbers"),
            pytest.param(b"phone,mobile\n972529876543,1\n", "INVALID_CSV", "to", 1, id="two columns of numbers"),
            pytest.param(b"\nto\n972529876543\n", "INVALID_CSV", "to", 1, id="an empty first line"),
            pytest.param(b"to\tname\n972529876543\tAda\n", "INVALID_CSV", "to", 1, id="tabs"),
            pytest.param(b"to,name,name\n972529876543,a,b\n", "INVALID_CSV", "name", 1, id="a column twice"),
            pytest.param(b"to,to\n972529876543,a\n", "INVALID_CSV", "to", 1, id="to twice"),
            pytest.param("to,name\n972529876543,Ñ".encode("latin-1"), "INVALID_CSV", "contacts", 2, id="Latin-1"),
            pytest.param("to,name\n972529876543,a".encode("utf-16"), "INVALID_CSV", "contacts", 1, id="UTF-16"),
            pytest.param(
                b"to,name\n" + b"972529876543,a\n" * 900 + b"1,\xff", "INVALID_CSV", "contacts", 902, id="late"
            ),
            pytest.param(b'to,name\n972529876543,"Ada\n', "INVALID_CSV", "contacts[0]", 2, id="an open quote"),
            pytest.param(b'to,n\n1,a\n2,"b"c\n', "INVALID_CSV", "contacts[1]", 3, id="text after a quote"),
            pytest.param(b"to," + b"x" * 200_000, "INVALID_CSV", "contacts[0]", 1, id="a huge name"),
            pytest.param(b'to,n\n1,"' + b"x" * 200_000, "INVALID_CSV", "contacts[0]", 2, id="a huge field"),
            pytest.param(
                b"to," + b",".join(b"v%d" % i for i in range(65)) + b"\n1", "INVALID_CSV", "v64", 1, id="65 variables"
            ),
            pytest.param(
                b",".join([b"to", *(b"v%d" % i for i in range(140_000))]), "INVALID_CSV", "v64", 1, id="140,000 names"
            ),
        ],
    )
    async def test_a_file_that_cannot_be_read_is_a_400_that_says_where(
        self, platform: Platform, body: bytes, code: str, field: str, line: int | None
    ) -> None:
        async with platform.nothing_stored():
            error = refused(await post(platform, body), 400, code, field)
        assert error["details"].get("line") == line

    @pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16", "windows-1255", "x"])
    async def test_another_charset_is_refused(self, platform: Platform, charset: str) -> None:
        async with platform.nothing_stored():
            answer = await post(platform, SHEET, headers={"Content-Type": f"text/csv; charset={charset}"})
        refused(answer, 400, "INVALID_CSV", "Content-Type")

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"text": ""}, "text"), ({"priority": "4"}, "priority"), ({"priority": "x"}, "priority"),
            ({"priority": "1.5"}, "priority"), ({"sendAt": "tomorrow"}, "sendAt"), ({"strict": "yes"}, "strict"),
            ({"spreadMinutes": "-1"}, "spreadMinutes"), ({"strategy": "fastest"}, "strategy"),
            ({"onUnknown": "x"}, "onUnknown"), ({"validitySeconds": "0"}, "validitySeconds"),
            ({"tags": "a,,b"}, "tags[1]"), ({"metadata": "{"}, "metadata"), ({"metadata": "[]"}, "metadata"),
            ({"metadata": r'{"a": "\ud800"}'}, "metadata"),
            ({"metadata": '{"a": "' + "x" * 8_192 + '"}'}, "metadata"), ({"sendat": "1"}, "sendat"),
            ({"contacts": "1"}, "contacts"), ({"phone": "12"}, "phone"), ({"priority": ["1", "2"]}, "priority"),
        ],
        ids=str,
    )  # fmt: skip
    async def test_a_bad_option_is_named(self, platform: Platform, query: dict[str, Any], field: str) -> None:
        async with platform.nothing_stored():
            answer = await post(platform, SHEET, **query)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["details"]["field"] == field

    async def test_a_missing_text_is_named(self, platform: Platform) -> None:
        answer = await platform.gateway.post("/v1/jobs", content=SHEET, headers={"Content-Type": "text/csv"})
        assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, "text")

    @pytest.mark.parametrize("text", ["%ED%A0%80", "%FF", "%00"])
    async def test_a_text_that_is_hardly_one_is_no_500(self, platform: Platform, text: str) -> None:
        answer = await platform.gateway.post(
            f"/v1/jobs?text={text}", content=SHEET, headers={"Content-Type": "text/csv"}
        )
        assert answer.status_code in (202, 400)

    @pytest.mark.parametrize(("key", "status", "code"), [("", 401, "UNAUTHORIZED"), (READ_KEY, 403, "FORBIDDEN")])
    async def test_it_needs_a_key_that_may_send(self, platform: Platform, key: str, status: int, code: str) -> None:
        async with platform.nothing_stored():
            refused(await post(platform, SHEET, headers={"X-API-KEY": key}), status, code)

    @pytest.mark.parametrize("kind", ["text/plain", "application/csv", "", "text/tab-separated-values"])
    async def test_other_kinds_are_a_415(self, platform: Platform, kind: str) -> None:
        refused(await post(platform, SHEET, headers={"Content-Type": kind}), 415, "UNSUPPORTED_MEDIA_TYPE")


class TestLimits:
    async def test_100_000_rows_are_one_job_and_100_001_are_none(self, platform: Platform) -> None:
        rows = "".join(f"{972_540_000_000 + i},{i}\n" for i in range(100_001))
        async with platform.nothing_stored():
            error = refused(await post(platform, f"to,n\n{rows}"), 400, "INVALID_REQUEST", "contacts")
        assert error["details"]["line"] == 100_002
        job = await accepted(platform, f"to,n\n{rows[: rows.rindex('9725')]}")
        assert job["accepted"] == 100_000

    async def test_a_file_over_32_mb_is_a_413(self, platform: Platform) -> None:
        async with platform.nothing_stored():
            refused(await post(platform, b"to\n" + b"1" * (32 * 1_048_576)), 413, "BODY_TOO_LARGE")

    async def test_others_get_their_turn_while_a_large_file_is_read(self, platform: Platform) -> None:
        breaths = 0

        async def breathe() -> None:
            nonlocal breaths
            breaths += 1

        platform.intake._breathe = breathe
        await accepted(platform, "to\n" + "".join(f"{972_540_000_000 + i}\n" for i in range(5_000)))
        assert breaths == 5 + 5, "once for each thousand read, and for each thousand sifted"

    def test_a_file_of_empty_lines_is_given_up(self) -> None:
        refusal = read(b"to\n" + b"\n" * 1_000_000)
        assert isinstance(refusal, BadRequest)
        assert (refusal.message, refusal.details["line"]) == ("too many empty lines", 200_002)

    @given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"to,a\n{text}".encode(errors="replace")))
    @settings(deadline=None, max_examples=300)
    def test_whatever_the_bytes_are_they_are_contacts_or_a_400(self, body: bytes) -> None:
        found = read(body)
        if isinstance(found, BadRequest):
            assert found.code in ("INVALID_CSV", "INVALID_REQUEST")
            assert found.details["field"]
        else:
            assert found

    @given(st.lists(st.tuples(st.sampled_from(JobRequest.__struct_encode_fields__), st.text(max_size=20)), max_size=6))
    @settings(deadline=None, max_examples=300)
    def test_whatever_the_options_are_they_are_read_or_refused_by_name(self, query: list[tuple[str, str]]) -> None:
        with suppress(BadRequest, Problem):
            options(query)

    def test_memory_is_that_of_the_contacts_not_of_the_text(self) -> None:
        """10 MB with one emoji in front would be 40 MB as one text. Read in rows, what is left is the contacts."""
        body = ("to,note\n" + "972529876543,👋 \n" + "x" * 60 + "\n").encode() + b"972529876543,\n" * 700_000
        tracemalloc.start()
        assert isinstance(read(body), BadRequest)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12_000_000


class TestIdempotency:
    async def test_the_same_file_and_options_get_the_first_answer(self, platform: Platform) -> None:
        key = {"Idempotency-Key": "k1"}
        first = await post(platform, SHEET, headers=key)
        again = await post(platform, SHEET, headers=key)
        assert (first.status_code, again.status_code, first.content) == (202, 202, again.content)

    @pytest.mark.parametrize(
        ("sheet", "text"), [(SHEET, "another"), (SHEET + "\n", "hello")], ids=["another text", "another file"]
    )
    async def test_another_file_or_option_is_a_422(self, platform: Platform, sheet: str, text: str) -> None:
        """The text stands in the query; it is part of what was asked."""
        key = {"Idempotency-Key": "k1"}
        await post(platform, SHEET, headers=key)
        async with platform.nothing_stored():
            refused(await post(platform, sheet, headers=key, text=text), 422, "IDEMPOTENCY_KEY_REUSED")


async def test_the_documentation_knows_both_bodies(platform: Platform) -> None:
    document = (await platform.gateway.get("/openapi.json")).json()
    content = document["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]
    assert set(content) == {"application/json", "text/csv"}
    assert content["text/csv"]["example"].startswith("to,")
