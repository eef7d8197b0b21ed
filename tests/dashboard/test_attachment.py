"""What Compose shows is what it sends, whatever comes late.

The story: the browser showed a new picture at once while the upload of it was still under way, or had failed; what went
out was the picture before.
"""

from paceline.dashboard.attachment import Attachment


def with_one() -> Attachment:
    attachment = Attachment()
    attachment.seen(1, "blob:a")
    assert attachment.stored(1, "ref-a")
    assert state(attachment) == ("ref-a", "blob:a")
    return attachment


def state(attachment: Attachment) -> tuple[str, str]:
    return attachment.ref, attachment.picture


def test_a_picture_is_shown_once_it_is_stored() -> None:
    attachment = Attachment()
    assert attachment.begin(1)
    attachment.seen(1, "blob:a")
    assert (state(attachment), attachment.is_under_way) == (("", ""), True)
    assert attachment.stored(1, "ref-a")
    assert (state(attachment), attachment.is_under_way) == (("ref-a", "blob:a"), False)


def test_the_browser_may_be_later_than_the_gateway() -> None:
    """Also with its word that the upload begins: bytes and words come by two ways."""
    attachment = Attachment()
    assert attachment.stored(1, "ref-a")
    assert state(attachment) == ("ref-a", "")
    assert attachment.begin(1)
    attachment.seen(1, "blob:a")
    assert (state(attachment), attachment.is_under_way) == (("ref-a", "blob:a"), False)


def test_from_the_first_word_of_another_there_is_none() -> None:
    """Its bytes may take minutes to come; until then the old one was shown and sent."""
    attachment = with_one()
    assert attachment.begin(2)
    assert (state(attachment), attachment.is_under_way) == (("", ""), True)
    attachment.seen(2, "blob:b")
    assert state(attachment) == ("", "")
    assert attachment.stored(2, "ref-b")
    assert state(attachment) == ("ref-b", "blob:b")


def test_one_that_the_gateway_refused_leaves_nothing_of_the_one_before() -> None:
    attachment = with_one()
    attachment.seen(2, "blob:b")
    assert attachment.stored(2, "")
    assert (state(attachment), attachment.is_under_way) == (("", ""), False)


def test_one_that_failed_at_the_browser_leaves_nothing_and_does_not_come_back() -> None:
    """The answer was lost, and the dashboard may have all of it; its viewer was told that it failed."""
    attachment = with_one()
    assert attachment.failed(2)
    assert (state(attachment), attachment.is_under_way) == (("", ""), False)
    assert not attachment.stored(2, "ref-b")
    assert state(attachment) == ("", "")


def test_one_that_was_replaced_meanwhile_does_not_come_back() -> None:
    attachment = Attachment()
    assert attachment.begin(1)
    attachment.seen(2, "blob:b")
    assert attachment.stored(2, "ref-b")
    assert not attachment.stored(1, "ref-a")
    assert not attachment.failed(1)
    attachment.seen(1, "blob:a")
    assert state(attachment) == ("ref-b", "blob:b")


def test_one_that_was_removed_meanwhile_does_not_come_back() -> None:
    attachment = Attachment()
    assert attachment.begin(1)
    attachment.remove()
    assert not attachment.begin(1)
    assert not attachment.stored(1, "ref-a")
    attachment.seen(1, "blob:a")
    assert (state(attachment), attachment.is_under_way) == (("", ""), False)
    assert attachment.stored(2, "ref-b")
