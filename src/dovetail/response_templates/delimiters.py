"""Delimiters: where a region opens or closes, and from where on the end of the text so far leaves that undecided.

A delimiter is searched with its own expression. Whether more text could still change the answer is asked of a second
one, the probe: `(?>delimiter)(?!)` never matches, so a partial search reports the leftmost place from which some path
that is tried before the first success runs into the end of the text. What starts before that place is decided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import regex

from dovetail.response_templates.patterns import Pattern

Match = Any  # `regex` ships no types

_ASCII = [chr(code) for code in range(128)]
_BEYOND_ASCII = "\x80-\U0010ffff"
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, eq=False)
class Delimiter:
    """Any of some literals, or a regular expression, as `source` with what `pattern` knows about it."""

    source: str
    pattern: Pattern
    literals: tuple[str, ...] | None = None

    @staticmethod
    def of_literals(literals: list[str]) -> Delimiter:
        """Any of `literals`; where several fit, the longest."""
        unique = tuple(dict.fromkeys(literals))
        source = "|".join(regex.escape(literal) for literal in sorted(unique, key=len, reverse=True))
        return Delimiter(source, Pattern.read(source), unique)

    @staticmethod
    def of_pattern(source: str) -> Delimiter:
        """What `source` matches; raises `regex.error` where it is malformed."""
        regex.compile(source, regex.DOTALL)
        pattern = Pattern.read(source)
        try:
            regex.compile(pattern.edged, regex.DOTALL)
        except regex.error:
            pattern = replace(pattern, patient=True)
        return Delimiter(source, pattern)

    @cached_property
    def expression(self) -> Any:
        """The compiled expression, with "." matching line ends too."""
        return regex.compile(self.source, regex.DOTALL)

    @cached_property
    def waits(self) -> bool:
        """Whether a match at the end of the text waits for more, as the specification has it."""
        words = self.literals
        return words is None or any(a != b and a.startswith(b) for a in words for b in words)

    @property
    def groups(self) -> frozenset[str]:
        """The names of the groups."""
        return frozenset(self.expression.groupindex)

    def first_characters(self) -> str | None:
        """A character class of everything that a match can start with, or None where that is not known."""
        if self.literals is not None:
            return "".join(re.escape(literal[0]) for literal in self.literals)
        if self.pattern.patient or self.pattern.looks_behind:
            return None
        probe = regex.compile(self.pattern.edged, regex.DOTALL)
        try:
            found = [char for char in _ASCII if any(_may_start(probe, before, char) for before in ("", "a", " "))]
        except TimeoutError:
            return None
        return None if len(found) == len(_ASCII) else "".join(map(re.escape, found)) + _BEYOND_ASCII


def _may_start(probe: Any, before: str, char: str) -> bool:
    return probe.match(before + char, len(before), partial=True, timeout=1.0) is not None


class Watch:
    """The delimiters that can come next, and what tells fast that none of them does."""

    def __init__(self, delimiters: list[Delimiter]) -> None:
        self.delimiters = delimiters
        self.patient = any(delimiter.pattern.patient for delimiter in delimiters)

    @cached_property
    def starts(self) -> re.Pattern[str] | None:
        """Finds the first character that a delimiter could start with; None where any place will do."""
        classes = [delimiter.first_characters() for delimiter in self.delimiters]
        if None in classes:
            return None
        merged = "".join(filter(None, classes))
        return re.compile(f"[{merged}]") if merged else _NOTHING

    @cached_property
    def finders(self) -> list[Any]:
        """Expressions that together find a match exactly where some delimiter does."""
        return self._merged([(delimiter, delimiter.source) for delimiter in self.delimiters])

    @cached_property
    def probes(self) -> list[Any]:
        """Expressions that never match and partially match where the answer is undecided."""
        return self._merged([(item, f"(?>{item.pattern.edged})(?!)") for item in self.delimiters])

    @staticmethod
    def _merged(sources: list[tuple[Delimiter, str]]) -> list[Any]:
        together = "|".join(f"(?:{source})" for item, source in sources if item.pattern.combines)
        alone = [source for item, source in sources if not item.pattern.combines]
        return [regex.compile(source, regex.DOTALL) for source in [*filter(None, [together]), *alone]]

    def undecided_from(self, text: str, start: int, timeout: float) -> int:
        """The place from which on more text could change what `text` means; its length where none could."""
        if self.patient:
            return start
        found = [probe.search(text, start, partial=True, timeout=timeout) for probe in self.probes]
        return min((match.start() for match in found if match is not None), default=len(text))

    def anywhere(self, text: str, start: int, timeout: float) -> bool:
        """Whether any delimiter matches at all."""
        return any(finder.search(text, start, timeout=timeout) is not None for finder in self.finders)
