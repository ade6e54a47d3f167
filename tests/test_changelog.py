"""Each changelog fragment is one sentence of a known kind, and the changelog knows the version."""

from __future__ import annotations

import re
from pathlib import Path

import dovetail

ROOT = Path(__file__).parent.parent


def test_a_fragment_is_one_paragraph_of_a_known_kind() -> None:
    for path in (ROOT / "changelog.d").iterdir():
        if path.name != "README.md":
            assert re.fullmatch(r"(\d+|\+[\w-]+)\.(added|changed|fixed|removed)\.md", path.name)
            text = path.read_text()
            assert text.endswith(".\n"), path.name
            assert "\n\n" not in text, path.name


def test_the_changelog_has_the_version() -> None:
    assert f"\n## {dovetail.__version__} (" in (ROOT / "CHANGELOG.md").read_text()
