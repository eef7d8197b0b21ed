"""All files together have a limit: one more is refused with nothing of it kept, until others are gone."""

import asyncio
from pathlib import Path

import pytest

from paceline.gateway.media import Limits, MediaDesk
from paceline.gateway.media_room import LOOK_EVERY_MS

from .platform import DAY_MS, Platform, refused
from .uploads import JPEG, PDF, PNG, upload, uploaded


@pytest.fixture
def small(platform: Platform) -> Platform:
    """Room for a PNG and a little more."""
    desk = MediaDesk(
        platform.store, platform.files, limits=Limits(max_total_bytes=len(PNG) + 100), in_thread=asyncio.to_thread
    )
    platform.media._room = desk._room
    return platform


def files(platform: Platform) -> set[str]:
    return {path.name for path in Path(platform._folder.name).rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["a.jpg", None], ids=["as a form", "as the body"])
async def test_what_does_not_fit_is_a_429_and_nothing_of_it_is_kept(small: Platform, name: str | None) -> None:
    await uploaded(small, PNG)
    before = files(small)
    async with small.nothing_stored():
        answer = await upload(small, JPEG, "image/jpeg", name)
    error = refused(answer, 429, "MEDIA_FULL", "file")
    assert error["details"]["limit"] == len(PNG) + 100
    assert int(answer.headers["Retry-After"]) > 0
    assert files(small) == before


async def test_a_file_that_is_there_already_takes_no_more_room(small: Platform) -> None:
    ref = await uploaded(small, PNG)
    assert await uploaded(small, PNG) == ref


async def test_what_another_process_stored_counts_after_a_minute(small: Platform) -> None:
    await uploaded(small, PNG)
    path = small.files.path(await uploaded(small, PNG))
    path.with_name(path.name.replace(path.name[:4], "ffff")).write_bytes(PDF)
    small.clock.forward(LOOK_EVERY_MS)
    refused(await upload(small, PDF, "application/pdf", "a.pdf"), 429, "MEDIA_FULL")


async def test_there_is_room_again_when_housekeeping_was_there(small: Platform) -> None:
    await uploaded(small, PNG)
    refused(await upload(small, JPEG, "image/jpeg", "a.jpg"), 429, "MEDIA_FULL")
    small.clock.forward(31 * DAY_MS)
    await small.media.sweep(small.clock.at_ms)
    await uploaded(small, JPEG, "image/jpeg", "a.jpg")


async def test_many_at_once_do_not_go_over_it_together(small: Platform) -> None:
    pictures = [PNG + bytes([number]) for number in range(5)]
    answers = await asyncio.gather(*(upload(small, picture) for picture in pictures))
    assert sorted(answer.status_code for answer in answers) == [201, 429, 429, 429, 429]
