"""Stop strings end an output at the same place, however it is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dovetail.models.stops import StopStrings

TEXTS = st.text("abé", max_size=30)
STOPS = st.lists(st.text("abé", min_size=1, max_size=4), max_size=3)


def passed(stops: list[str], pieces: list[bytes]) -> tuple[bytes, str | None]:
    finder, text = StopStrings(stops), b""
    for piece in pieces:
        if finder.matched is None:
            text += finder.feed(piece)
    return text + (b"" if finder.matched else finder.flush()), finder.matched


@given(TEXTS, STOPS, st.data())
def test_the_stop_that_is_complete_first_ends_the_text(text: str, stops: list[str], data: st.DataObject) -> None:
    whole = text.encode()
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5))), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(cuts)]
    ends = [(text.find(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
    if not ends:
        assert (whole, None) == passed(stops, pieces)
    else:
        end, length, stop = min(ends)
        assert (text[: end + length].encode(), stop) == passed(stops, pieces)


@given(TEXTS, STOPS)
def test_pieces_of_whole_characters_stay_whole(text: str, stops: list[str]) -> None:
    finder = StopStrings(stops)
    for char in text:
        finder.feed(char.encode()).decode()
        if finder.matched is not None:
            return
    finder.flush().decode()
