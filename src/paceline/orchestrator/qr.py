"""A QR code as a picture, and which kind of answer a caller wants. `linking` has the text."""

import io
from typing import Literal

import segno

QR_SCALE = 8
QR_BORDER = 4
"""Modules of white around it, as the standard asks for."""

QrKind = Literal["json", "png", "svg"]


def picture(text: str, kind: QrKind) -> bytes:
    file = io.BytesIO()
    segno.make(text, micro=False).save(file, kind=kind, scale=QR_SCALE, border=QR_BORDER)
    return file.getvalue()


def asked_for(accept: str) -> QrKind:
    """The first of what a caller accepts that there is."""
    for part in accept.split(","):
        kind = part.split(";")[0].strip().lower()
        if kind in ("image/png", "image/*"):
            return "png"
        if kind == "image/svg+xml":
            return "svg"
        if kind in ("application/json", "application/*", "*/*"):
            return "json"
    return "json"
