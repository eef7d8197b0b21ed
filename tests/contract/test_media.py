"""POST /v1/media: a file comes in whole, is what it says, is stored once, and is kept while it is needed."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from paceline.domain.errors import Unavailable
from paceline.gateway.media import LEFT_BEHIND_MS, Limits, MediaDesk
from paceline.kits import failpoint
from paceline.store import keys

from .platform import DAY_MS, FRIEND, READ_KEY, SEND_KEY, Platform, refused
from .uploads import CSV, HTML, JPEG, PDF, PNG, ZIP, ref_of, upload, uploaded

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def stored(platform: Platform) -> set[str]:
    root = Path(platform._folder.name)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def path_of(ref: str) -> str:
    return f"{ref[:2]}/{ref}"


@pytest.mark.parametrize("name", ["picture.png", None], ids=["as a form", "as the body"])
async def test_a_file_gets_a_ref_that_names_its_bytes_and_its_type(platform: Platform, name: str | None) -> None:
    answer = await upload(platform, PNG, "image/png", name, headers={"X-API-KEY": SEND_KEY})
    assert answer.status_code == 201, answer.text
    ref = ref_of(PNG, "png")
    assert answer.json() == {
        "mediaRef": ref,
        "type": "image/png",
        "size": len(PNG),
        "sha256": ref.partition("-")[0],
        "expiresAt": platform.clock.at_ms + 30 * DAY_MS,
    }
    assert platform.files.path(ref).read_bytes() == PNG
    known = (await platform.snapshot())[keys.media(ref)]
    now = str(platform.clock.at_ms)
    assert known == {"type": "image/png", "size": str(len(PNG)), "createdAt": now, "lastUsedAt": now} | (
        {"name": name} if name else {}
    )


@pytest.mark.parametrize(
    ("body", "type_", "name", "kind"),
    [
        pytest.param(JPEG, "image/jpeg", "a.jpg", "jpg", id="jpeg"),
        pytest.param(JPEG, "image/jpg", None, "jpg", id="jpeg by another name"),
        pytest.param(PDF, "application/pdf", "a.pdf", "pdf", id="pdf"),
        pytest.param(ZIP, DOCX, "a.docx", "docx", id="docx"),
        pytest.param(ZIP, "application/zip", "bomb.zip", "zip", id="a zip bomb is just bytes"),
        pytest.param(CSV, "text/csv; charset=utf-8", "a.csv", "csv", id="csv"),
        pytest.param(CSV.decode().encode("cp1255"), "text/csv", "a.csv", "csv", id="csv in windows-1255"),
        pytest.param(PDF, "application/octet-stream", "a.pdf", "pdf", id="by its name"),
    ],
)
async def test_what_can_be_sent_is_taken(
    platform: Platform, body: bytes, type_: str, name: str | None, kind: str
) -> None:
    answer = await upload(platform, body, type_, name)
    assert answer.status_code == 201, answer.text
    assert answer.json()["mediaRef"] == ref_of(body, kind)


@pytest.mark.parametrize(
    ("body", "type_", "name"),
    [
        pytest.param(HTML, "image/png", "a.png", id="html as png"),
        pytest.param(HTML, "image/png", None, id="html as png, raw"),
        pytest.param(PNG, "image/jpeg", "a.jpg", id="png as jpeg"),
        pytest.param(b"GIF89a" + PNG, "image/png", "a.png", id="a gif before a png"),
        pytest.param(PNG[:6], "image/png", "a.png", id="the start of a png"),
        pytest.param(PNG, "text/plain", "a.txt", id="png as text"),
        pytest.param(b"MZ\x90\x00\x03" + b"x" * 99, "text/plain", "a.txt", id="a program as text"),
        pytest.param(b"x" * 300_000 + b"\x00", "text/csv", "a.csv", id="a zero far behind"),
        pytest.param(b"MZ\x90\x00", "application/pdf", "a.pdf", id="a program as pdf"),
        pytest.param(HTML, "text/html", "a.html", id="html"),
        pytest.param(b"<svg/>", "image/svg+xml", "a.svg", id="svg"),
        pytest.param(b"MZ\x90\x00", "application/x-msdownload", "a.exe", id="a program"),
        pytest.param(PNG, "application/octet-stream", None, id="no type and no name"),
        pytest.param(PNG, "application/octet-stream", "a.exe", id="no type and a wrong name"),
        pytest.param(HTML, "application/octet-stream", "a.png", id="no type and a name that lies"),
    ],
)
async def test_what_is_not_what_it_says_is_refused_and_leaves_nothing(
    platform: Platform, body: bytes, type_: str, name: str | None
) -> None:
    async with platform.nothing_stored():
        error = refused(await upload(platform, body, type_, name), 400, "MEDIA_TYPE", "file")
    assert "image/png" in error["details"]["allowed"]
    assert stored(platform) == set()


@pytest.mark.parametrize("name", ["a.png", None], ids=["as a form", "as the body"])
async def test_an_empty_file_is_refused(platform: Platform, name: str | None) -> None:
    async with platform.nothing_stored():
        refused(await upload(platform, b"", "image/png", name), 400, "INVALID_REQUEST", "file")
    assert stored(platform) == set()


@pytest.mark.parametrize("name", ["a.png", None], ids=["as a form", "as the body"])
async def test_forty_megabytes_are_a_413(platform: Platform, name: str | None) -> None:
    async with platform.nothing_stored():
        refused(await upload(platform, PNG + bytes(40 * 1_048_576), "image/png", name), 413, "BODY_TOO_LARGE")
    assert stored(platform) == set()


@pytest.mark.parametrize("name", ["a.png", None], ids=["as a form", "as the body"])
async def test_the_limit_holds_to_the_byte(platform: Platform, name: str | None) -> None:
    limit = platform.media.limits.max_bytes
    async with platform.nothing_stored():
        answer = await upload(platform, PNG + bytes(limit - len(PNG) + 1), "image/png", name)
        assert refused(answer, 413, "MEDIA_TOO_LARGE", "file")["details"]["limit"] == limit
    assert stored(platform) == set()
    answer = await upload(platform, PNG + bytes(limit - len(PNG)), "image/png", name)
    assert (answer.status_code, answer.json()["size"]) == (201, limit)


async def test_a_body_that_lies_about_its_length_is_cut_off(platform: Platform) -> None:
    """Without a Content-Length there is nothing to believe; what comes is counted."""

    async def endless() -> Any:
        yield PNG
        for _ in range(40):
            yield bytes(1_048_576)

    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/media", content=endless(), headers={"Content-Type": "image/png"})
        assert answer.status_code == 413
    assert stored(platform) == set()


def form(boundary: str, *parts: bytes, end: bool = True) -> bytes:
    body = b"".join(b"--" + boundary.encode() + b"\r\n" + part + b"\r\n" for part in parts)
    return body + (b"--" + boundary.encode() + b"--\r\n" if end else b"")


PART = b'Content-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n' + PNG


@pytest.mark.parametrize(
    ("content", "type_"),
    [
        pytest.param(form("b", PART, end=False), "multipart/form-data; boundary=b", id="truncated"),
        pytest.param(form("b", PART)[:200], "multipart/form-data; boundary=b", id="cut in the file"),
        pytest.param(form("b", PART)[:20], "multipart/form-data; boundary=b", id="cut in a header"),
        pytest.param(form("b", PART), "multipart/form-data", id="no boundary"),
        pytest.param(form("b", PART), "multipart/form-data; boundary=other", id="another boundary"),
        pytest.param(b"", "multipart/form-data; boundary=b", id="empty"),
        pytest.param(b"not a form", "multipart/form-data; boundary=b", id="no form"),
        pytest.param(
            form("b", PART.replace(b"\r\n\r\n", b"\r\nX: " + b"x" * 9_000 + b"\r\n\r\n", 1)),
            "multipart/form-data; boundary=b",
            id="a long header",
        ),
        pytest.param(
            form("b", b'Content-Disposition: form-data; name="file"\r\nContent-Type: a/b; charset=zz\r\n\r\nx'),
            "multipart/form-data; boundary=b",
            id="a charset nobody knows",
        ),
        pytest.param(
            form("b", b'Content-Disposition: form-data; name="file"\r\n\r\n\xff\xfe\xfd'),
            "multipart/form-data; boundary=b",
            id="no text",
        ),
        pytest.param(
            form("b", b'Content-Disposition: form-data; name="file"\r\n\r\nhello'),
            "multipart/form-data; boundary=b",
            id="a file without a name",
        ),
        pytest.param(form("b", PART, PART), "multipart/form-data; boundary=b", id="two files"),
        pytest.param(
            form("b", PART, b'Content-Disposition: form-data; name="fiel"\r\n\r\nx'),
            "multipart/form-data; boundary=b",
            id="a field misspelt",
        ),
        pytest.param(
            form("b", *[b'Content-Disposition: form-data; name="x"\r\n\r\n'] * 2_000),
            "multipart/form-data; boundary=b",
            id="two thousand parts",
        ),
    ],
)
async def test_a_broken_form_is_a_400_and_leaves_nothing(platform: Platform, content: bytes, type_: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/media", content=content, headers={"Content-Type": type_})
        refused(answer, 400, "INVALID_REQUEST")
    assert stored(platform) == set()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../../etc/cron.d/x.png", "x.png"),
        ("..\\..\\x.png", "x.png"),
        ("/etc/passwd.png", "passwd.png"),
        ("a%00b.png", "a%00b.png"),
        ("....png", "png"),
        ("תמונה.png", "תמונה.png"),
        ("x" * 300 + ".png", "x" * 124 + ".png"),
    ],
)
async def test_a_file_name_is_never_a_path(platform: Platform, name: str, shown: str) -> None:
    """It is shown to the recipient of a document, cleaned; on the disk there is only the ref."""
    ref = await uploaded(platform, PNG, "image/png", name)
    assert stored(platform) == {path_of(ref)}
    found = await platform.store.media.get(ref)
    assert found is not None
    assert found.name == shown


async def test_the_same_file_is_stored_once(platform: Platform) -> None:
    refs = {await uploaded(platform, PNG, "image/png", f"{number}.png") for number in range(3)}
    refs.add(await uploaded(platform, PNG, "image/png", None))
    assert refs == {ref_of(PNG, "png")}
    assert stored(platform) == {path_of(ref_of(PNG, "png"))}


async def test_many_uploads_of_one_file_at_once_are_one_file(platform: Platform) -> None:
    answers = await asyncio.gather(*(upload(platform) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert stored(platform) == {path_of(ref_of(PNG, "png"))}


async def test_the_same_bytes_as_another_type_are_another_file(platform: Platform) -> None:
    refs = {await uploaded(platform, CSV, "text/csv", "a.csv"), await uploaded(platform, CSV, "text/plain", "a.txt")}
    assert stored(platform) == {path_of(ref) for ref in refs}
    assert len(refs) == 2


async def test_who_may_upload(platform: Platform) -> None:
    async with platform.nothing_stored():
        refused(await upload(platform, headers={"X-API-KEY": ""}), 401, "UNAUTHORIZED")
        refused(await upload(platform, headers={"X-API-KEY": "wrong"}), 401, "UNAUTHORIZED")
        refused(await upload(platform, headers={"X-API-KEY": READ_KEY}), 403, "FORBIDDEN")
    assert stored(platform) == set()


async def test_a_full_disk_is_a_503_and_leaves_nothing(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    async with platform.nothing_stored():
        refused(await upload(platform), 503, "UNAVAILABLE")
    assert stored(platform) == set()


# Housekeeping


async def sweep(platform: Platform) -> None:
    """All folders once."""
    for _ in range(256):
        await platform.media.sweep(platform.clock.at_ms)


async def test_what_nobody_used_for_thirty_days_is_removed(platform: Platform) -> None:
    ref = await uploaded(platform)
    platform.clock.forward(30 * DAY_MS)
    await platform.media.sweep(platform.clock.at_ms)
    assert stored(platform) == {path_of(ref)}
    other = await uploaded(platform, PDF, "application/pdf", "a.pdf")
    platform.clock.forward(1)
    await platform.media.sweep(platform.clock.at_ms)
    assert stored(platform) == {path_of(other)}
    assert [key for key in await platform.snapshot() if ref in key] == []


async def test_an_upload_of_the_same_file_begins_its_time_anew(platform: Platform) -> None:
    ref = await uploaded(platform)
    platform.clock.forward(29 * DAY_MS)
    await uploaded(platform)
    platform.clock.forward(29 * DAY_MS)
    await platform.media.sweep(platform.clock.at_ms)
    assert stored(platform) == {path_of(ref)}


async def test_what_an_open_job_needs_is_never_removed(platform: Platform) -> None:
    ref = await uploaded(platform)
    job = await platform.post_job(mode="image", mediaRef=ref, validitySeconds=300 * 86_400)
    platform.clock.forward(200 * DAY_MS)
    await sweep(platform)
    assert stored(platform) == {path_of(ref)}
    assert (await platform.gateway.post(f"/v1/jobs/{job['jobId']}/cancel")).status_code == 200
    platform.clock.forward(30 * DAY_MS + 1)
    await sweep(platform)
    assert stored(platform) == set()


class Killed(BaseException):
    pass


def kill_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hook(passed: str) -> None:
        if passed == name:
            raise Killed

    monkeypatch.setattr(failpoint, "_hook", hook)


async def take(platform: Platform, body: bytes = PNG) -> Any:
    async def chunks() -> Any:
        yield body

    return await platform.media.take(chunks(), "image/png", "a.png", field="file", now_ms=platform.clock.at_ms)


async def test_a_crash_before_it_is_recorded_leaves_a_file_that_is_cleared_up(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at("media-kept-not-recorded", monkeypatch)
    async with platform.nothing_stored():
        with pytest.raises(Killed):
            await take(platform)
    failpoint.set_hook(None)
    ref = ref_of(PNG, "png")
    refused(
        await platform.gateway.post("/v1/jobs", json={"contacts": [FRIEND], "mode": "image", "mediaRef": ref}),
        404,
        "UNKNOWN_MEDIA",
        "mediaRef",
    )
    assert stored(platform) == {path_of(ref)}
    written_ms = platform.files.path(ref).stat().st_mtime_ns // 1_000_000
    platform.clock.at_ms = written_ms + LEFT_BEHIND_MS - 1
    await sweep(platform)
    assert stored(platform) == {path_of(ref)}
    platform.clock.forward(2)
    await sweep(platform)
    assert stored(platform) == set()


async def test_a_crash_of_the_housekeeping_is_made_good_by_the_next(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgotten but not removed: the file is nobody's, and is cleared up like one."""
    await take(platform)
    platform.clock.forward(31 * DAY_MS)
    kill_at("media-forgotten", monkeypatch)
    with pytest.raises(Killed):
        await platform.media.sweep(platform.clock.at_ms)
    failpoint.set_hook(None)
    assert len(stored(platform)) == 1
    platform.clock.at_ms = platform.files.path(ref_of(PNG, "png")).stat().st_mtime_ns // 1_000_000 + LEFT_BEHIND_MS + 1
    await sweep(platform)
    assert stored(platform) == set()


@pytest.mark.parametrize("moment", ["put_aside", "forget", "known"])
async def test_a_file_that_is_uploaded_while_it_is_removed_is_there_or_the_caller_is_told(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Between any two steps of the removal: either the file is whole afterwards, or the upload was answered with 503.
    There is never a record without a file."""
    ref = await uploaded(platform)
    platform.clock.forward(31 * DAY_MS)
    outcomes: list[str] = []
    other = MediaDesk(platform.store, platform.files)

    async def upload_now() -> None:
        async def chunks() -> Any:
            yield PNG

        try:
            await other.take(chunks(), "image/png", "b.png", field="file", now_ms=platform.clock.at_ms)
            outcomes.append("stored")
        except Unavailable:
            outcomes.append("told")

    real_thread, real_known = platform.media._in_thread, platform.store.media.known

    async def in_thread(call: Any, *arguments: Any) -> Any:
        if call.__name__ == moment and not outcomes:
            await upload_now()
        return await real_thread(call, *arguments)

    async def known(refs: list[str]) -> set[str]:
        if moment == "known" and refs and not outcomes:
            await upload_now()
        return await real_known(refs)

    monkeypatch.setattr(platform.media, "_in_thread", in_thread)
    monkeypatch.setattr(platform.store.media, "known", known)
    await platform.media.sweep(platform.clock.at_ms)
    assert outcomes
    recorded = await platform.store.media.get(ref)
    assert recorded is None or platform.files.has(ref, len(PNG))
    assert outcomes == ["stored"]
    assert recorded is not None


async def test_limits_are_settings(platform: Platform) -> None:
    small = MediaDesk(platform.store, platform.files, limits=Limits(max_bytes=100, kept_days=1))

    async def chunks() -> Any:
        yield PNG

    with pytest.raises(Exception, match="at most 100 bytes"):
        await small.take(chunks(), "image/png", None, field="file", now_ms=0)
