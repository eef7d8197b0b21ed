"""Facts from rows: past sends are read one by one, and say the same as if all of them were read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.store.rows import DIGITS, Moments, sends_text

times = st.integers(0, 10**13 - 1)


@given(st.lists(st.tuples(times, times), max_size=40), st.integers(-50, 50), st.integers(-50, 50))
def test_past_sends_read_one_by_one_are_those_read_together(sends, place, stop):
    for at, whole in ((0, [start for start, _ in sends]), (DIGITS, [end for _, end in sends])):
        moments = Moments(sends_text(sends), at)
        assert list(moments) == whole
        assert len(moments) == len(whole)
        assert list(moments[place:stop]) == whole[place:stop]
        assert list(moments[-place:]) == whole[-place:]
        if -len(whole) <= place < len(whole):
            assert moments[place] == whole[place]
        else:
            with pytest.raises(IndexError):
                moments[place]


def test_a_text_of_another_length_is_no_past_sends():
    with pytest.raises(ValueError, match="no sends"):
        Moments("12", 0)
