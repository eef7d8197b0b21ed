"""Files for the tests about media, and the shortest way to upload one."""

import hashlib
import zlib
from typing import Any

import httpx

from .platform import Platform

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"pixels" * 200
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + b"pixels" * 200
PDF = b"%PDF-1.7\n" + b"words " * 200
ZIP = b"PK\x03\x04\x14\x00\x00\x00" + zlib.compress(bytes(1_000_000))
HTML = b"<html><script>alert(1)</script></html>"
CSV = "to,name\r\n972529876543,עדה\r\n".encode()


def ref_of(body: bytes, kind: str) -> str:
    return f"{hashlib.sha256(body).hexdigest()}-{kind}"


async def upload(
    platform: Platform,
    body: bytes = PNG,
    type_: str = "image/png",
    name: str | None = "picture.png",
    **options: Any,
) -> httpx.Response:
    """As a form, or raw if it has no name."""
    if name is None:
        headers = {"Content-Type": type_} | options.pop("headers", {})
        return await platform.gateway.post("/v1/media", content=body, headers=headers, **options)
    return await platform.gateway.post("/v1/media", files={"file": (name, body, type_)}, **options)


async def uploaded(platform: Platform, *arguments: Any) -> str:
    answer = await upload(platform, *arguments)
    assert answer.status_code == 201, answer.text
    ref: str = answer.json()["mediaRef"]
    return ref
