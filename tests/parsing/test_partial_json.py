"""The value of cut and malformed JSON, as far as it can be told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.parsing.partial_json import MAX_DEPTH, best_effort

CUT: list[tuple[str, Any]] = [
    # text, value
    ("", None),
    ("{", {}),
    ("[", []),
    ('"ab', "ab"),
    ('{"a', {}),
    ('{"a"', {}),
    ('{"a":', {}),
    ('{"a": "x', {"a": "x"}),
    ('{"a": "x\\', {"a": "x"}),
    ('{"a": "x\\"', {"a": 'x"'}),
    ('{"a": "x\\\\', {"a": "x\\"}),
    ('{"a": "x\\u00', {"a": "x"}),
    ('{"a": "\\ud83e', {"a": ""}),
    ('{"a": "\\ud83e\\udd8a', {"a": "🦊"}),
    ('{"a": "\\\\u00', {"a": "\\u00"}),
    ('{"a": tr', {}),
    ('{"a": 12', {}),
    ('{"a": 12,', {"a": 12}),
    ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
    ('{"a": 1}', {"a": 1}),
    (' {"a": null, "b" ', {"a": None}),
]
MALFORMED: list[tuple[str, Any]] = [
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    ('{"a": 1,}', {"a": 1}),
    ('{"a" 1}', {}),
    ('{"a": x}', {}),
    ("{a: 1}", {}),
    ('{"a": 1]', {"a": 1}),
    ("[1, 2}", [1, 2]),
    ('{"a": 1} trailing', {"a": 1}),
    ('{"a": NaN}', {}),
    ('{"a": "line\nbreak', {"a": "line\nbreak"}),
    ('{"a": "\\q", "b": 1', {"a": "\\q"}),
    ("[}", []),
    ("}", None),
    ("hello", None),
    ('{"a": {"b": [}', {"a": {"b": []}}),
]


@pytest.mark.parametrize(("text", "value"), CUT + MALFORMED)
def test_what_can_be_told_is_told(text: str, value: Any) -> None:
    assert value == best_effort(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.booleans(), st.data())
def test_a_cut_value_is_a_part_of_the_whole(value: Any, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert value == best_effort(text)
    cut = text[: data.draw(st.integers(0, len(text)))]
    assert is_part(best_effort(cut), value)


def is_part(part: Any, whole: Any) -> bool:
    """Whether one value can be a beginning of another."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(item, whole[key]) for key, item in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_part, part, whole))
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    return bool(part is None or part == whole)


def test_depth_does_not_exhaust_the_stack() -> None:
    value, depth = best_effort("[" * 100_000), 0
    while value:
        value, depth = value[0], depth + 1
    assert MAX_DEPTH - 1 == depth


@given(st.text(alphabet='{}[]",:\\ u1atrue\n', max_size=30))
def test_nothing_raises(text: str) -> None:
    best_effort(text)
