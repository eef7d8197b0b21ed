"""What Compose shows is what it sends, whatever comes late.

The story: the browser showed a new picture at once while the upload of it was still under way, or had failed; what went
out was the picture before.
"""

from paceline.dashboard.attachment import Attachment


def stored(attachment: Attachment, name: str, size: int = 1) -> None:
    turn = attachment.begin(name, size)
    attachment.seen(name, size, f"blob:{name}")
    assert attachment.stored(turn, f"ref-{name}")


def state(attachment: Attachment) -> tuple[str, str]:
    return attachment.ref, attachment.picture


def test_a_picture_is_shown_once_it_is_stored() -> None:
    attachment = Attachment()
    turn = attachment.begin("a.png", 1)
    attachment.seen("a.png", 1, "blob:a")
    assert state(attachment) == ("", "")
    assert attachment.stored(turn, "ref-a")
    assert state(attachment) == ("ref-a", "blob:a")


def test_the_browser_may_be_later_than_the_gateway() -> None:
    attachment = Attachment()
    assert attachment.stored(attachment.begin("a.png", 1), "ref-a")
    assert state(attachment) == ("ref-a", "")
    attachment.seen("a.png", 1, "blob:a")
    assert state(attachment) == ("ref-a", "blob:a")


def test_while_another_is_under_way_there_is_none() -> None:
    attachment = Attachment()
    stored(attachment, "a.png")
    turn = attachment.begin("b.png", 2)
    assert state(attachment) == ("", "")
    attachment.seen("b.png", 2, "blob:b")
    assert state(attachment) == ("", "")
    assert attachment.stored(turn, "ref-b")
    assert state(attachment) == ("ref-b", "blob:b")


def test_one_that_failed_leaves_nothing_of_the_one_before() -> None:
    attachment = Attachment()
    stored(attachment, "a.png")
    turn = attachment.begin("b.png", 2)
    attachment.seen("b.png", 2, "blob:b")
    assert attachment.stored(turn, "")
    assert state(attachment) == ("", "")


def test_one_that_was_replaced_meanwhile_does_not_come_back() -> None:
    attachment = Attachment()
    first, second = attachment.begin("a.png", 1), attachment.begin("b.png", 2)
    attachment.seen("b.png", 2, "blob:b")
    assert attachment.stored(second, "ref-b")
    assert not attachment.stored(first, "ref-a")
    assert state(attachment) == ("ref-b", "blob:b")
    attachment.seen("a.png", 1, "blob:a")
    assert state(attachment) == ("ref-b", "")


def test_one_that_was_removed_meanwhile_does_not_come_back() -> None:
    attachment = Attachment()
    turn = attachment.begin("a.png", 1)
    attachment.remove()
    assert not attachment.is_current(turn)
    assert not attachment.stored(turn, "ref-a")
    attachment.seen("a.png", 1, "blob:a")
    assert state(attachment) == ("", "")


def test_a_picture_that_the_dashboard_did_not_take_is_not_shown() -> None:
    """The one before is still the one that is sent."""
    attachment = Attachment()
    stored(attachment, "a.png")
    attachment.seen("huge.png", 9, "blob:huge")
    assert state(attachment) == ("ref-a.png", "")
