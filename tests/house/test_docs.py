"""The documentation says what the code does: its generated parts are up to date and nothing that exists is left out."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import paceline
from paceline.domain.codes import CODES
from paceline.domain.reasons import Reason
from paceline.settings import Settings, UpSettings, env_name
from paceline.testing.checkers import JUDGES
from paceline.testing.planted import BUGS
from paceline.worker.drivers.config import Behaviour
from paceline.worker.drivers.ledger import LedgerLine

ROOT = Path(__file__).parents[2]
SOURCE = Path(paceline.__file__).parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
REQUIREMENTS = [line for line in (ROOT / "requirements.in").read_text().splitlines() if line and line[0] != "#"]

_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
_ROUTE = re.compile(r"@(get|post|delete|put|patch)\(\s*f?\"([^\"]+)\"")


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _page(name: str) -> str:
    return (ROOT / name).read_text()


def _first_cells(text: str) -> set[str]:
    """What stands in backticks in the first column of a page's tables."""
    return set(re.findall(r"^\| `([^`]+)`", text, re.MULTILINE))


def _squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    """If this fails: python docs/generate.py"""
    assert _generator().rendered(page.read_text()) == page.read_text()


def test_a_page_that_fell_behind_would_be_noticed() -> None:
    stale = _page("docs/settings.md").replace("`LEASE_MS` | `120000`", "`LEASE_MS` | `90000`")
    assert stale != _page("docs/settings.md")
    assert _generator().rendered(stale) != stale


@pytest.mark.parametrize("kind", [Settings, UpSettings])
def test_every_setting_is_listed_with_the_words_under_its_field(kind: type[Settings]) -> None:
    text = _page("docs/settings.md")
    for name, field in kind.model_fields.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{env_name(name, kind)}` |"))
        assert _squeezed(field.description or "-") in row.replace("\\|", "|")


def test_every_key_of_the_simulated_whatsapp_and_every_field_of_the_ledger_is_listed() -> None:
    listed = _first_cells(_page("docs/simulated-whatsapp.md"))
    assert set(Behaviour.__struct_fields__) <= listed
    assert set(LedgerLine.__struct_encode_fields__) <= listed


def test_every_error_code_and_every_reason_is_listed() -> None:
    text = _page("docs/api.md")
    assert set(CODES) <= _first_cells(text)
    assert [reason for reason in Reason if f"`{reason}`" not in text] == []


@pytest.mark.parametrize("service", ["gateway", "dispatcher", "orchestrator"])
def test_the_endpoints_listed_are_those_that_exist(service: str) -> None:
    """Neither one nobody documented nor a documented one that does not answer."""
    parts = [SOURCE / service / "app.py", *(SOURCE / service).glob("routes_*.py")]
    source = "\n".join(part.read_text() for part in parts)
    prefix = re.search(r'^_PATH = "(.*)"', source, re.MULTILINE)
    routes = {
        f"{method.upper()} {_plain(path.replace('{_PATH}', prefix[1] if prefix else ''))}"
        for method, path in _ROUTE.findall(source)
    }
    section = _page("docs/api.md").partition(f"## {service.title()} (port")[2].partition("\n## ")[0]
    listed = {_plain(cell) for cell in _first_cells(section) if re.match(r"(GET|POST|DELETE|PATCH) ", cell)}
    assert listed == routes


def _plain(path: str) -> str:
    """Parameters without their names, which code and page spell differently."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_every_failpoint_is_explained_and_every_explained_one_exists() -> None:
    used = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"^\s+failpoint\(\"([a-z-]+)\"\)", path.read_text(), re.M)
    }
    section = _page("docs/reliability.md").partition("## Failpoints")[2].partition("\n## ")[0]
    assert _first_cells(section) == used


def test_every_judge_and_every_planted_bug_is_named() -> None:
    text = _page("docs/reliability.md")
    assert [judge.__name__ for _, judge in JUDGES if f"`{judge.__name__}`" not in text] == []
    assert [bug.name for bug in BUGS if bug.name not in text] == []


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_dependency_says_why_it_earns_its_place(requirement: str) -> None:
    assert f"| {requirement} | " in _page("ARCHITECTURE.md")


@pytest.mark.parametrize("package", sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))
def test_every_package_is_in_the_tree(package: str) -> None:
    assert re.search(rf"^  {package}/ +\S", _page("ARCHITECTURE.md"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in _LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or re.search(rf"^#+ {anchor}$", target.read_text(), re.MULTILINE | re.IGNORECASE), anchor


def test_files_and_commands_that_are_named_exist() -> None:
    """Paths of tests, and targets of make."""
    targets = set(re.findall(r"^([a-z]+):", _page("Makefile"), re.MULTILINE))
    for page in PAGES:
        text = page.read_text()
        assert set(re.findall(r"^make ([a-z]+)", text, re.MULTILINE)) <= targets
        for path in re.findall(r"`((?:tests|docs|tools)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
