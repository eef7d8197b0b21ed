"""The words that stand under a field in the source, for the document that callers read.

Schemas are written with a docstring under each field that needs one. Python forgets those; they are read from the
source once, when somebody first asks for the document. Neighbour: `openapi`.
"""

import ast
import inspect
import textwrap
import typing
from collections.abc import Iterable, Iterator

import msgspec


def descriptions_of(kinds: Iterable[object]) -> dict[str, dict[str, str]]:
    """By the name of each struct found in these types, or inside their fields: the words under its fields, by the name
    a field has on the wire."""
    seen: dict[type[msgspec.Struct], dict[str, str]] = {}
    waiting = list(kinds)
    while waiting:
        for struct in _structs(waiting.pop()):
            if struct not in seen:
                seen[struct] = dict(_described(struct))
                waiting += typing.get_type_hints(struct, include_extras=False).values()
    return {struct.__name__: words for struct, words in seen.items() if words}


def _structs(kind: object) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for inner in typing.get_args(kind):
        yield from _structs(inner)


def _described(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    on_the_wire = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    for base in reversed(struct.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            for name, words in _under_fields(base):
                yield on_the_wire[name], words


def _under_fields(kind: type) -> Iterator[tuple[str, str]]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, SyntaxError):
        return  # Installed without its source: the document has fewer words, and is right.
    name = ""
    for node in definition.body if isinstance(definition, ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield name, " ".join(str(node.value.value).split())
            name = ""
