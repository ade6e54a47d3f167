"""Content parsers: tags that are found fast are the same tags."""

from __future__ import annotations

from typing import Any

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

import dovetail as dt
from dovetail.response_templates.content import _SPACES

TAGS = [
    r"<(?P<key>\w)>\s*(?P<value>.*?)\s*</>",
    r"<(?P<key>[^>\n]+)>(?P<value>.*?)\s*</>",
    r"\s*(?:<(?P<key>a|ab)>|(?P<key>b)=)(?P<value>.*?)\s*;",
    r"(?P<key>a)!|<(?P<key>b)>(?P<value>.*?)\s*\.",
    # not of the simple kind
    r"(?-s)<(?P<key>\w)>(?P<value>.*?)\s*</>",
    r"<(?P<key>\w)>(?P<value>.*?)\s*</(?P=key)?>",
    r"(?P<key>a)(?P<value> )=|(?P<key>b)(?P<value>.*?)\s*;",
    r"<(?P<key>\w)>(?P<value>.*?)\s* ;",
]
PIECES = st.lists(st.sampled_from([*"a b c < > </> ; = ! . <a> <b> \x1c".split(" "), " ", "\n", "\u2003"]), max_size=24)


def tags(pattern: str) -> dict[str, Any]:
    content = {"content": "xml-inline", "content_args": {"tag_pattern": pattern, "merge_duplicates": True}}
    return {"start_anchor": "Z", "fields": {"x": {"open": "@", **content}}}


@pytest.mark.parametrize("pattern", TAGS)
@given(text=PIECES.map("".join))
@example("<a>b\n</>")
def test_tags_are_those_that_the_pattern_says(pattern: str, text: str) -> None:
    found: dict[str, Any] = {}
    for match in regex.finditer(pattern, text, regex.DOTALL):
        found.setdefault(match["key"], []).append(match["value"])
    wanted = {key: values[0] if len(values) == 1 else values for key, values in found.items()}
    assert wanted == dt.parse_response(f"@{text}", tags(pattern), prefix="").get("x", {})


def test_blanks_are_what_the_expressions_call_white_space() -> None:
    assert set(_SPACES) == set(regex.findall(r"\s", "".join(map(chr, range(0x110000)))))
