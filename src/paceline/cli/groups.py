"""Options that several commands share, as one dataclass that a command takes like any other argument.

`Annotated` options stand on the fields; `grouped` shows each of them to typer as an option of the command, and puts
them together again when it is called.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    given = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: one.annotation for name, one in given.items() if is_dataclass(one.annotation)}
    flat: list[inspect.Parameter] = []
    for name, one in given.items():
        flat += _options(groups[name]) if name in groups else [one.replace(kind=inspect.Parameter.KEYWORD_ONLY)]

    @wraps(command)
    def run(**values: Any) -> None:
        made = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**values, **made)

    # Typer reads both.
    run.__dict__["__signature__"] = inspect.Signature(flat)
    run.__annotations__ = {one.name: one.annotation for one in flat}
    return run


def _options(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(f.name, keyword, default=_default(f), annotation=hints[f.name]) for f in fields(kind)]


def _default(field: "Field[Any]") -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default
