"""Multipart forms as our routes read them: named texts and files, everything else refused by name.

Files larger than a megabyte lie on the disk while they are read, so a form costs little memory. Neighbour: `web` for
JSON bodies.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from litestar.datastructures import UploadFile
from litestar.datastructures.multi_dicts import FormMultiDict
from litestar.exceptions import ClientException, ValidationException

from paceline.kits.web import AnyRequest, Problem

MULTIPART = "multipart/form-data"
BINARY = {"type": "string", "format": "binary"}
"""In the documentation: a file."""
CHUNK = 262_144
PARTS_LIMIT = 1_000
"""The framework's own."""


def form_content(required: list[str], **fields: dict[str, Any]) -> dict[str, Any]:
    """In the documentation: a form with these fields."""
    schema = {"type": "object", "required": required, "properties": fields, "additionalProperties": False}
    return {MULTIPART: {"schema": schema}}


class Form:
    def __init__(self, fields: FormMultiDict) -> None:
        self._fields = fields

    def only(self, names: Iterable[str]) -> None:
        """Refuses fields of other names: a misspelt one must not be overlooked."""
        unknown = set(self._fields.keys()) - set(names)
        if unknown:
            name = min(unknown)[:64]
            raise Problem(400, "INVALID_REQUEST", "there is no such field", field=name)

    def file(self, name: str) -> UploadFile | None:
        found = self._fields.getall(name, [])
        if len(found) > 1:
            raise Problem(400, "INVALID_REQUEST", "one file at a time", field=name)
        if found and not isinstance(found[0], UploadFile):
            raise Problem(400, "INVALID_REQUEST", "must be a file, with a file name", field=name)
        return found[0] if found else None

    async def text(self, name: str) -> str | None:
        """A text, or several under one name as lines. A file counts as its text."""
        parts = []
        for value in self._fields.getall(name, []):
            if isinstance(value, UploadFile):
                try:
                    parts.append((await value.read()).decode("utf-8-sig"))
                except UnicodeDecodeError as error:
                    raise Problem(400, "INVALID_REQUEST", "must be text in UTF-8", field=name) from error
            else:
                parts.append(str(value))
            if "\0" in parts[-1]:
                raise Problem(400, "INVALID_REQUEST", "a text has a NUL character", field=name)
        return "\n".join(parts) if parts else None


@asynccontextmanager
async def read_form(request: AnyRequest) -> AsyncIterator[Form]:
    """The form of a request. Its files are gone when the block ends."""
    if request.content_type[0] != MULTIPART:
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", f"send a form with Content-Type: {MULTIPART}")
    try:
        fields = await request.form()
    except ValidationException as error:
        raise Problem(400, "INVALID_REQUEST", "the Content-Type names no boundary", field="Content-Type") from error
    except ClientException as error:
        if error.status_code == 413:
            raise
        message = f"the form cannot be read: it has no end, more than {PARTS_LIMIT} parts, or headers that are too long"
        raise Problem(400, "INVALID_REQUEST", message) from error
    except (LookupError, UnicodeError) as error:
        # A part's charset that nobody knows, or bytes that are not of it.
        raise Problem(400, "INVALID_REQUEST", "a field of the form is no text in its charset") from error
    try:
        yield Form(fields)
    finally:
        await fields.close()


async def chunks_of(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(CHUNK):
        yield chunk
