"""Law 2 (conservation) and law 3 (chunk invariance): events tile the output, and say what the grammar captures."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dovetail.engine import CaptureEvent
from dovetail.grammar import ir
from tests.machines import compiled, within_limits
from tests.oracles import Span, TooAmbiguousError, captures
from tests.strategies import rules_with_outputs


def spans(events: list[CaptureEvent]) -> tuple[Span, ...]:
    """The captures of some events that are not empty, in the order in which they open."""
    found: list[Span] = []
    opened: list[int] = []
    for event in events:
        if event.kind == "open":
            opened.append(len(found))
            found.append((event.name, event.start, -1))
        elif event.kind == "close":
            index = opened.pop()
            found[index] = (event.name, found[index][1], event.end)
    return tuple(span for span in found if span[1] < span[2])


def assert_tiled(events: list[CaptureEvent], size: int) -> None:
    at = 0
    open_names: list[str] = []
    for event in events:
        if event.kind == "open":
            open_names.append(event.name)
        elif event.kind == "close":
            assert open_names.pop() == event.name
        else:
            assert (open_names[-1] if open_names else "") == event.name
            assert at < event.end
        assert at == event.start
        at = event.end
    assert size == at


@settings(max_examples=150)
@given(case=rules_with_outputs(), cuts=st.lists(st.integers(0, 60), max_size=5))
@within_limits
def test_events_tile_the_output_however_it_is_cut(case: tuple[ir.Rule, bytes], cuts: list[int]) -> None:
    rule, data = case
    grammar = compiled(rule)
    whole = grammar.matcher()
    assume(whole.accept_bytes(data))
    assert_tiled(whole.events(), len(data))
    pieces = grammar.matcher()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in pairwise(edges):
        assert pieces.accept_bytes(data[start:end])
        assert_tiled(pieces.events(), end)
    assert whole.events() == pieces.events()
    assert whole.is_complete == pieces.is_complete


@settings(max_examples=200)
@given(case=rules_with_outputs())
@within_limits
def test_events_are_the_captures_of_the_grammar(case: tuple[ir.Rule, bytes]) -> None:
    rule, data = case
    matcher = compiled(rule).matcher()
    assume(matcher.accept_bytes(data) and matcher.is_complete)
    try:
        expected = captures(rule, data)
    except TooAmbiguousError:
        assume(False)
    # Where the grammar is ambiguous any of the ways to read the output is right.
    assert spans(matcher.events()) in expected
