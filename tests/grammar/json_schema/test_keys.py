"""Which keys a pattern has beginnings of that come to an end."""

from __future__ import annotations

import pytest

from dovetail.grammar.json_schema import strings
from dovetail.grammar.json_schema.keys import grows

PATTERNS = [
    ("^x-", True),
    ("x", True),
    ("^[a-z]+$", True),
    ("^.*$", True),
    ("^(?!x).*$", True),
    ("^(?:a|b)[0-9]*$", True),
    (r"^\d{4}$", False),
    ("^$", False),
    ("^[a-z]+_id$", False),
    ("^[a-z]*(?:_id)?$", False),
    ("^(default|[0-9]{3})$", False),
    ("^(a|b.*)$", False),
    ("^a$|^bb*$", False),
    ("^(?!x$)[a-z]{1,3}$", False),
]


@pytest.mark.parametrize(("pattern", "endless"), PATTERNS)
def test_keys_grow_where_every_beginning_goes_on_for_ever(pattern: str, endless: bool) -> None:
    assert endless is grows(strings.language((pattern,), 0, None))


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in PATTERNS if pattern != "^$"])
def test_keys_of_bounded_length_do_not_grow(pattern: str) -> None:
    assert not grows(strings.language((pattern,), 0, 8))
    assert not grows(strings.language((pattern,), 0, 2000))
