"""How a verb is put together: it carries what it uses and nothing else, and a planted bug changes exactly one place."""

import re

import pytest

from paceline.store import keys
from paceline.store.scripts import ScriptConfig, load

VERBS = load(ScriptConfig())


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_key_a_verb_names_has_its_builder(name: str) -> None:
    """A key that is used and not built would be an error at run time, in a branch that may be rare."""
    source = VERBS[name].source
    head, _, body = source.partition("\n}\n")
    assert set(re.findall(r"^  (\w+) = function", head, re.MULTILINE)) == set(re.findall(r"\bK\.(\w+)", body))


def test_a_verb_carries_only_what_it_uses() -> None:
    """Small verbs stay small: every function of a script is made anew at each call."""
    assert "facts_text" in VERBS["look_due"].source
    assert "facts_text" not in VERBS["stage_chunk"].source
    assert "local NEXT" not in VERBS["stage_chunk"].source


@pytest.mark.parametrize(
    ("file", "old"),
    [
        pytest.param("hand_off.lua", "no such text", id="nowhere"),
        pytest.param("hand_off.lua", "call(", id="in many places"),
    ],
)
def test_a_planted_bug_must_name_one_place(file: str, old: str) -> None:
    """A bug that changes nothing, or more than it says, would prove nothing."""
    with pytest.raises(ValueError, match="places to change"):
        load(ScriptConfig(), {file: (old, "")})


def test_configuration_reaches_the_scripts() -> None:
    """Two configurations are two scripts; Redis keeps them apart by their text."""
    other = load(ScriptConfig(global_rpm=7))
    assert "global_rpm = 7" in other["hand_off"].source
    assert other["hand_off"].sha != VERBS["hand_off"].sha
    assert keys.fleet_sends.template in other["hand_off"].source
