"""Each changelog fragment is one sentence of a known kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FRAGMENTS = [
    path for path in sorted((Path(__file__).parent.parent / "changelog.d").iterdir()) if path.name != "README.md"
]


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_is_one_sentence_of_a_known_kind(path: Path) -> None:
    assert re.fullmatch(r"(\d+|\+[\w-]+)\.(added|changed|fixed|removed)\.md", path.name)
    text = path.read_text()
    assert text.endswith(".\n")
    assert "\n\n" not in text
