"""What a JSON decoder would let pass: a field twice, a NUL character. And what must pass all the same."""

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from paceline.gateway.routes_common import _contacts_of, _JobIn
from paceline.gateway.schemas import SendRequest
from paceline.kits import strict_json
from paceline.kits.problem import Problem

from .platform import FRIEND, Platform, refused

JSON = {"Content-Type": "application/json"}
LONG = b'"x":"' + b"x" * strict_json.AT_ONCE_BYTES + b'",'
"""Makes a body one that is looked through in a thread."""


@pytest.mark.parametrize("padding", [b"", LONG], ids=["short", "long"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(b'"a":1,"a":2}', "a", id="twice"),
        pytest.param(b'"a":1,"\\u0061":2}', "a", id="twice, written in two ways"),
        pytest.param(b'"b":[{"c":{"a":1,"a":2}}]}', "a", id="twice, deep inside"),
        pytest.param(b'"a":"x\\u0000"}', "a", id="NUL in a text"),
        pytest.param(b'"a":["x","\\u0000"]}', "a", id="NUL in a list"),
        pytest.param(b'"a":"\\\\\\u0000"}', "a", id="NUL after a backslash"),
        pytest.param(b'"a\\u0000":1}', None, id="NUL in a name"),
    ],
)
async def test_it_is_refused_by_name(padding: bytes, body: bytes, field: str | None) -> None:
    with pytest.raises(Problem) as caught:
        await strict_json.check(b"{" + padding + body)
    assert (caught.value.status, caught.value.code) == (400, "INVALID_JSON")
    assert caught.value.details.get("field") == field


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":{"a":1},"b":[{"a":1},{"a":1}]}', id="one name in several objects"),
        pytest.param(b'{"a":"\\\\u0000"}', id="a text that only looks like an escape"),
        pytest.param(b'{"a":"\\u0001\\u00000"}'.replace(b"\\u0000", b"\\u0020"), id="other escapes"),
        pytest.param(b"[]", id="no object"),
    ],
)
async def test_what_is_right_passes(body: bytes) -> None:
    await strict_json.check(body)


CONTACTS = st.lists(
    st.one_of(
        st.just('"972520000001"'),
        st.lists(
            st.sampled_from(
                [
                    '"to":"972520000001"',
                    '"to" : "+972520000002"',
                    '"t\\u006f":"972520000003"',
                    '"vars":{"name":"Ada"}',
                    '"vars":{"name":"10:30","x":"\\u003a"}',
                    '"vars":{"name":"Ada","name":"Bob"}',
                    '"vars":{}',
                    '"timezone":null',
                    '"timezone":"Asia/Tokyo"',
                    '"clientRef":"a:b"',
                    '"clientRef":"\\":"',
                ]
            ),
            max_size=5,
        ).map(lambda fields: "{" + ",".join(fields) + "}"),
    ),
    min_size=1,
    max_size=8,
).map(lambda items: f"[{','.join(items)}]")


@settings(deadline=None, max_examples=400, database=None)
@given(
    contacts=CONTACTS, before=st.sampled_from(["", '"text":"a:b",', '"metadata":{"a":1,"a":2},', '"contacts":["1"],'])
)
def test_counting_says_what_reading_says(contacts: str, before: str) -> None:
    """A long list is counted instead of being read a second time: what is refused, and by which name, is the same."""
    body = f'{{{before}"contacts":{contacts}}}'.encode()
    try:
        job = msgspec.json.decode(body, type=_JobIn)
    except msgspec.ValidationError:
        assume(False)
    assert _said(body, _contacts_of(body, job)) == _said(body, None)


def _said(body: bytes, part: strict_json.Part | None) -> object:
    try:
        return strict_json.look(body, part=part)
    except Problem as problem:
        return problem.content()


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        pytest.param(b'{"to": "972520000001", "message": "hi"}', True, id="what must be there"),
        pytest.param(b'{"to": "972520000001", "message": "at 10:30"}', False, id="a colon in a text"),
        pytest.param(b'{"to": "972520000001", "message": "hi", "message": "ho"}', False, id="twice"),
        pytest.param(b'{"to": "972520000001", "message": "hi", "priority": 1}', False, id="more than must be there"),
        pytest.param(b'{"to": "972520000001", "message": "\\u0000"}', False, id="NUL"),
    ],
)
def test_a_body_with_only_what_must_be_there_is_not_read_again(body: bytes, plain: bool) -> None:
    msgspec.json.decode(body, type=SendRequest)
    assert strict_json.is_plain(body, SendRequest) == plain


def test_a_list_like_most_is_not_read_again() -> None:
    body = msgspec.json.encode(
        {
            "contacts": [{"to": f"97252000000{i}", "vars": {"name": "Ada"}} for i in range(9)],
            "text": "see https://x.example",
        }
    )
    assert _contacts_of(body, msgspec.json.decode(body, type=_JobIn)).has_each_once()


async def test_a_caller_is_told_which_field_it_is(platform: Platform) -> None:
    body = b'{"contacts":["%b"],"text":"a\\u0000b"}' % FRIEND.encode()
    async with platform.nothing_stored():
        refused(await platform.gateway.post("/v1/jobs", content=body, headers=JSON), 400, "INVALID_JSON", "text")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"text": "a\0b"}, "text", id="NUL in the text"),
        pytest.param({"tags": "a,b\0"}, "tags", id="NUL in a tag"),
        pytest.param({"metadata": '{"a":"\\u0000"}'}, "a", id="NUL in the metadata"),
        pytest.param({"metadata": '{"a":1,"a":2}'}, "a", id="twice in the metadata"),
    ],
)
async def test_the_fields_beside_a_csv_are_held_to_the_same(
    platform: Platform, query: dict[str, str], field: str
) -> None:
    """They stand in the query, where nobody looked: a NUL went out to people."""
    params, headers = {"text": "hello", **query}, {"Content-Type": "text/csv"}
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", content=f"to\n{FRIEND}\n", params=params, headers=headers)
        refused(answer, 400, "INVALID_JSON", field)


@pytest.mark.parametrize(
    ("contact", "field"),
    [
        pytest.param(f'{{"to":"972520000001","to":"{FRIEND}"}}', "to", id="twice"),
        pytest.param(f'{{"to":"{FRIEND}","vars":{{"name":"a\\u0000"}}}}', "name", id="NUL"),
    ],
)
async def test_the_contacts_in_a_form_are_held_to_the_same(platform: Platform, contact: str, field: str) -> None:
    """JSON inside of a form is JSON all the same."""
    parts = [("contacts", (None, f"[{contact}]")), ("message", (None, "hello"))]
    async with platform.nothing_stored():
        refused(await platform.gateway.post("/api/messages", files=parts), 400, "INVALID_JSON", field)


async def test_a_stop_is_heard_with_whatever_characters_it_comes(platform: Platform) -> None:
    """A worker only passes on what a person typed; refused, it would be lost."""
    await platform.connect()
    data = {"from": FRIEND, "text": "stop", "whatsappId": "3EB0\x00", "note": "\x00"}
    assert (await platform.webhook("MESSAGE_RECEIVED", data)).status_code == 200
    assert FRIEND in (await platform.gateway.get("/v1/suppressions")).text
