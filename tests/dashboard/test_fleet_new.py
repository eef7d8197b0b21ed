"""The dialog that registers a number: what it asks the orchestrator for."""

from types import SimpleNamespace
from typing import Any

import pytest

from paceline.dashboard.pages import fleet_new


class FakeField:
    def __init__(self, *_: object, value: str = "", **__: object) -> None:
        self.value = value


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was asked for; it stays without an answer."""
    calls: list[dict[str, Any]] = []

    async def act(_visit: object, _asking: object) -> None:
        return None

    monkeypatch.setattr(fleet_new, "Field", FakeField)
    monkeypatch.setattr(fleet_new, "act", act)
    return calls


async def press(calls: list[dict[str, Any]], form: fleet_new.Form) -> None:
    sessions = SimpleNamespace(create=lambda phone, **given: calls.append({"phone": phone, **given}))
    visit: Any = SimpleNamespace(api=SimpleNamespace(sessions=sessions))
    await fleet_new._add(visit, None, form)  # type: ignore[arg-type]


async def test_pressed_twice_it_is_one_session(asked: list[dict[str, Any]]) -> None:
    """Without a name of its own each request made another one."""
    form = fleet_new.Form()
    form.phone.value = "447700900055"
    await press(asked, form)
    await press(asked, form)
    first, second = asked
    assert first == second
    assert first["session_id"] != fleet_new.Form().made_up


@pytest.mark.parametrize(("chosen", "proxy"), [("", None), ("direct", "direct")], ids=["of the pool", "none"])
async def test_a_number_may_go_without_a_proxy(asked: list[dict[str, Any]], chosen: str, proxy: str | None) -> None:
    assert chosen in fleet_new.PROXIES
    form = fleet_new.Form()
    form.phone.value, form.proxy.value = "447700900055", chosen
    await press(asked, form)
    assert asked[0]["proxy"] == proxy
