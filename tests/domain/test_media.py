"""What may be sent, what bytes must look like, and what is left of a file name."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.media import (
    KINDS,
    NAME_LIMIT,
    Media,
    declared_kind,
    fits,
    is_ref,
    looks_like,
    may_be_text,
    new_ref,
    shown_name,
    types_said,
)

SHA = hashlib.sha256(b"x").hexdigest()
BY_NAME = {kind.name: kind for kind in KINDS}
HEADS = {
    "jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "webp": b"RIFF\x10\x00\x00\x00WEBPVP8 ",
    "pdf": b"%PDF-1.7\n",
    "zip": b"PK\x03\x04\x14\x00",
    "ole": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "text": b"to,name\r\n",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("family", HEADS)
def test_bytes_must_be_of_the_family_their_type_belongs_to(kind: object, family: str) -> None:
    """Every kind against every family of bytes: its own and no other."""
    assert looks_like(kind, HEADS[family]) == (kind.looks == family)  # type: ignore[attr-defined, arg-type]


@pytest.mark.parametrize(
    "head",
    [b"<html>", b"", b"\x89PNG", b"RIFF\x10\x00\x00\x00WAVE", b"\xff\xd8", b" %PDF-1.7", b"MZ\x90", b"\x7fELF"],
    ids=["html", "empty", "cut png", "wav", "cut jpeg", "pdf behind a space", "exe", "elf"],
)
def test_other_bytes_are_no_picture_and_no_document(head: bytes) -> None:
    assert not any(looks_like(kind, head) for kind in KINDS if kind.looks != "text")


@pytest.mark.parametrize(
    ("chunk", "is_text"),
    [
        (b"a,b\r\n\t1,2\x0c", True),
        ("שלום".encode(), True),
        ("שלום".encode("cp1255"), True),
        ("שלום".encode("utf-16"), True),
        (b"\x00\x01", False),
        (b"MZ\x90\x00\x03", False),
        (b"text\x1b[31m", False),
    ],
    ids=["csv", "utf-8", "windows-1255", "utf-16 with its mark", "zeros", "a program", "escape sequences"],
)
def test_what_may_be_text(chunk: bytes, is_text: bool) -> None:
    assert may_be_text(chunk, head=chunk[:16]) is is_text


@pytest.mark.parametrize(
    ("content_type", "name", "kind"),
    [
        ("image/png", None, "png"),
        ("IMAGE/PNG; charset=x", "a.jpg", "png"),
        ("image/jpg", None, "jpg"),
        ("application/octet-stream", "a.PDF", "pdf"),
        ("", "a.jpeg", "jpg"),
        ("", "a.tar.gz", None),
        ("", "png", "png"),
        ("text/html", "a.txt", None),
        ("image/svg+xml", "a.png", None),
        ("application/vnd.ms-excel.sheet.macroEnabled.12", "a.xlsm", None),
        ("", None, None),
    ],
)
def test_what_a_file_claims_to_be(content_type: str, name: str | None, kind: str | None) -> None:
    found = declared_kind(content_type, name)
    assert (found and found.name) == kind


def test_only_pictures_go_as_images_and_everything_goes_as_a_document() -> None:
    assert {kind.name for kind in KINDS if fits(kind.type, "image")} == {"jpg", "png", "webp"}
    assert all(fits(kind.type, "document") for kind in KINDS)
    assert not any(fits(kind.type, "message") for kind in KINDS)
    assert not fits("text/html", "document")
    assert "application/pdf" not in types_said("image")


def test_a_ref_names_bytes_and_type_and_nothing_else_is_one() -> None:
    ref = new_ref(SHA, BY_NAME["pdf"])
    assert ref == f"{SHA}-pdf"
    assert is_ref(ref)
    assert Media(ref, "application/pdf", 1).sha256 == SHA
    for other in ("", SHA, f"{SHA}-exe", f"{SHA.upper()}-pdf", f"{SHA[1:]}-pdf", f"{ref}\n", f"../{ref}", f"{ref}/x"):
        assert not is_ref(other)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("offer.pdf", "offer.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\offer.pdf", "offer.pdf"),
        ("/", None),
        ("..", None),
        (".htaccess", "htaccess"),
        ("a\x00b\r\nc.pdf", "abc.pdf"),
        ("invoice\u202egpj.exe", "invoicegpj.exe"),
        ('<b>"x"|?*.pdf', "bx.pdf"),
        ("  two   words .pdf ", "two words .pdf"),
        ("הצעה.pdf", "הצעה.pdf"),
        ("", None),
        (None, None),
    ],
)
def test_a_name_is_its_last_part_with_nothing_in_it_that_acts(name: str | None, shown: str | None) -> None:
    assert shown_name(name) == shown


def test_a_long_name_keeps_its_ending() -> None:
    shown = shown_name("x" * 500 + ".pdf")
    assert shown is not None
    assert (len(shown), shown[-5:]) == (NAME_LIMIT, "x.pdf")


@given(st.text(max_size=400))
def test_no_name_has_more_than_a_name_may_have(name: str) -> None:
    shown = shown_name(name)
    assert shown is None or (0 < len(shown) <= NAME_LIMIT and not set(shown) & set('/\\\x00\n<>:"|?*'))
    assert shown_name(shown) == shown
