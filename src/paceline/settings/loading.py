"""Reading the settings: every bad value is named at once, because being told of them one restart at a time is a
waste of an evening.
"""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from paceline.domain.errors import ConfigError
from paceline.settings.services import Settings

AnySettings = TypeVar("AnySettings", bound=Settings)


class SettingsError(ConfigError):
    """The environment holds values we cannot start with. `faults` names each: variable, then what is wrong."""

    def __str__(self) -> str:
        return "bad settings:\n" + "\n".join(f"  {fault}" for fault in self.faults)


def load_settings() -> Settings:
    """Read the environment; raise `SettingsError` with every problem in it."""
    return load(Settings)


def load(kind: type[AnySettings], **overrides: object) -> AnySettings:
    """The same for a given class; `overrides` are fields that win over the environment."""
    try:
        return kind(**overrides)  # type: ignore[arg-type]  # pydantic checks and reports them like the rest
    except ValidationError as error:
        # Without `from`: the library's error shows the values, and a value may be a secret.
        faults = [_describe(kind, entry["loc"], entry["msg"]) for entry in error.errors(include_input=False)]
        raise SettingsError(faults) from None


def read_policy(name: str) -> dict[str, Any]:
    """The policy of that name or path as TOML's dictionary, for `policy.trust.parse`.

    A word is one of our presets; what has a slash or ends in `.toml` is a file.
    """
    presets = resources.files("paceline") / "policy" / "presets"
    is_file = "/" in name or name.endswith(".toml")
    source = Path(name).expanduser() if is_file else presets / f"{name}.toml"
    if not source.is_file():
        known = ", ".join(sorted(entry.name.removesuffix(".toml") for entry in presets.iterdir()))
        raise SettingsError([f"PACELINE_POLICY: no policy {name!r}; use one of {known}, or the path of a .toml file"])
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError([f"PACELINE_POLICY: {name}: {error}"]) from error


def env_name(field: str, kind: type[Settings] = Settings) -> str:
    """The environment variable of a field."""
    alias = kind.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else field.upper()


def _describe(kind: type[Settings], location: tuple[int | str, ...], message: str) -> str:
    field = str(location[0])
    name = env_name(field, kind) if field in kind.model_fields else field.upper()
    return f"{name}: {message.removeprefix('Value error, ')}"
