"""Real templates with all their markers renamed: nothing is known by its name, but for the corrections."""

from __future__ import annotations

import random
import re
from pathlib import Path

from dovetail.templates.analysis import Analysis, analyze_template
from dovetail.templates.analysis.source import read_source
from tests.recorded import templates

ROLES = {"assistant", "user", "system", "tool", "model"}


def renamed(source: str, draw: random.Random) -> str:
    """The template with other words in its markers, but for words that stand elsewhere too."""
    markers = sorted(read_source(source).markers, key=len, reverse=True)
    outside = source
    for marker in markers:
        outside = outside.replace(marker, " ")
    words = {word for marker in markers for word in re.findall(r"[A-Za-z]{3,}(?:_[A-Za-z]+)*", marker)}
    for word in sorted(words - ROLES, key=lambda word: (-len(word), word)):
        if not re.search(rf"\b{word}\b", outside):
            other = "".join(draw.choices("bcdfglmnprtvz", k=2)) + "".join(draw.choices("aeioubdglmnr", k=5))
            source = re.sub(rf"(?<![A-Za-z_]){word}(?![A-Za-z_])", other.upper() if word.isupper() else other, source)
    return source


def proofs(analysis: Analysis) -> list[tuple[str, bool]]:
    return [(row.feature, row.passed) for row in analysis.verifications]


def test_renamed_templates_are_analyzed_like_the_real_ones(conformance: Path) -> None:
    draw = random.Random(7)
    for path in templates(conformance / "llama_cpp" / "templates"):
        source = path.read_text()
        real = analyze_template(source)
        other = renamed(source, draw)
        if any(row.correction for row in real.findings):
            continue  # whose feature has been renamed
        found = analyze_template(other)
        assert (real.modes, real.capabilities) == (found.modes, found.capabilities), path.name
        assert proofs(real) == proofs(found), path.name
        if other != source and real.same_as not in ("", "llama"):
            assert found.dialect != real.dialect, path.name
