"""Reading what older clients post as a form: contacts in whatever way they wrote them, and a text or a picture.

Neighbour: `routes_older` has the routes; what comes out here is an ordinary job request and perhaps a file.
"""

import hashlib
from typing import Any, NamedTuple

import msgspec
from litestar.datastructures import UploadFile

from paceline.domain.errors import BadRequest
from paceline.gateway import checks
from paceline.gateway.schemas import JobRequest
from paceline.kits import strict_json
from paceline.kits.forms import Form, chunks_of
from paceline.kits.web import decode

FIELDS = ("contacts", "message", "image", "caption", "sessionId", "phone")


class Older(NamedTuple):
    job: JobRequest
    image: UploadFile | None


async def read_older(form: Form) -> Older:
    """What is asked for. Nothing is stored yet: the job may still be refused."""
    form.only(FIELDS)
    message, image = await form.text("message"), form.file("image")
    if image is not None and message == "":
        message = None  # A browser sends every field of its form.
    if (message is None) == (image is None):
        field = "message" if message is None else "image"
        raise BadRequest("INVALID_REQUEST", "send either a message or an image", field=field)
    caption = await form.text("caption")
    if image is None and caption:
        raise BadRequest("INVALID_REQUEST", "only an image has a caption", field="caption")
    fields: dict[str, Any] = {"contacts": await _contacts(await form.text("contacts"))}
    for name in ("sessionId", "phone"):
        if value := await form.text(name):
            fields[name] = value
    if image is not None:
        # Stands for the file until it is stored, and makes two forms with the same one the same request.
        fields |= {"mode": "image", "mediaRef": await _sha256(image)}
    # Under their names in the form; a job would call both of them `text`.
    if message is not None:
        checks.template(message, "message")
    elif caption:
        checks.template(caption, "caption")
    return Older(decode(msgspec.json.encode({**fields, "text": message or caption or ""}), JobRequest), image)


async def _sha256(file: UploadFile) -> str:
    hashed = hashlib.sha256()
    async for chunk in chunks_of(file):
        hashed.update(chunk)
    await file.seek(0)
    return hashed.hexdigest()


async def _contacts(text: str | None) -> list[Any]:
    """A JSON list, or one number a line."""
    written = (text or "").strip()
    if not written:
        raise BadRequest("INVALID_REQUEST", "a JSON list, or one number a line", field="contacts")
    if written.startswith("["):
        listed = decode(written.encode(), list[Any], inside="contacts")
        await strict_json.check(written.encode())
        return listed
    return [line.strip() for line in written.splitlines() if line.strip()]
