"""Globs and text patterns of rules: what they take, whatever is written."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.agent.patterns import expand_braces, matches_path, matches_text
from dovetail.errors import InputError

PATHS = [
    # pattern, path, whether it matches
    ("*.py", "a.py", True),
    ("*.py", "d/a.py", False),
    ("**/*.py", "a.py", True),
    ("**/*.py", "d/e/a.py", True),
    ("d/**", "d/e/a.py", True),
    ("d/**", "d", False),
    ("d/**/a.py", "d/a.py", True),
    ("d/**/a.py", "d/x/y/a.py", True),
    ("d/**/a.py", "d/xa.py", False),
    ("**/a", "ba", False),
    ("a**b", "a/x/b", True),
    ("a?c", "abc", True),
    ("a?c", "a/c", False),
    ("[a-c]x", "bx", True),
    ("[!a-c]x", "bx", False),
    ("[!a-c]x", "/x", False),
    ("[]x", "[]x", True),
    ("{a,b}.txt", "b.txt", True),
    ("{a,b}.txt", "c.txt", False),
    ("{a}.txt", "{a}.txt", True),
    ("{a,{b,c}}", "c", True),
    ("x{,y}", "x", True),
    (r"a\*", "a*", True),
    (r"a\*", "ab", False),
    ("**", "any/thing", True),
    ("", "", True),
    ("日本*", "日本語.txt", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), PATHS)
def test_a_glob_takes_the_paths_that_it_means(pattern: str, path: str, expected: bool) -> None:
    assert expected == matches_path(pattern, path)


def test_case_is_ignored_on_demand() -> None:
    assert not matches_path("*.PY", "a.py")
    assert matches_path("*.PY", "a.py", ignore_case=True)


@given(st.text("ab*", max_size=8), st.text("ab/", max_size=12))
def test_a_star_in_a_text_pattern_is_any_run(pattern: str, text: str) -> None:
    assert fnmatch.fnmatchcase(text, pattern) == matches_text(pattern, text)


@given(st.text("ab*?[!]", max_size=8), st.text("ab", max_size=12))
def test_globs_agree_with_the_standard_library_within_one_folder(pattern: str, text: str) -> None:
    if "**" not in pattern and "[" not in pattern:
        assert fnmatch.fnmatchcase(text, pattern) == matches_path(pattern, text)


def test_a_pattern_made_to_backtrack_ends_at_once() -> None:
    assert not matches_path("*a" * 40 + "b", "a" * 5000)


def test_an_explosion_of_braces_is_refused() -> None:
    with pytest.raises(InputError, match="more than 256"):
        expand_braces("{a,b}" * 20)
