"""Delimiters: where a region opens or closes, and from where on the end of the text so far leaves that undecided.

A delimiter is searched with its own expression. Whether more text could still change the answer is asked of a second
one, the probe: `(?>delimiter)(?!)` never matches, so a partial search reports the leftmost place from which some path
that is tried before the first success runs into the end of the text. What starts before that place is decided.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import regex

from dovetail.response_templates.patterns import Pattern

Match = tuple[int, int, dict[str, str]]  # start, end, and the named groups that took part

_ASCII = [chr(code) for code in range(128)]
_BEYOND = "\x80"
_ALPHABET = [*_ASCII, _BEYOND]
_MAX_FIRSTS = 24


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

    @cached_property
    def groups(self) -> frozenset[str]:
        """The names of the groups."""
        return frozenset(self.expression.groupindex)

    def search(self, text: str, start: int, limit: float) -> Match | None:
        """The first match from `start` on; raises TimeoutError past the limit."""
        if self.literals is not None and len(self.literals) == 1:
            place = text.find(self.literals[0], start)
            return (place, place + len(self.literals[0]), {}) if place >= 0 else None
        if text.find(self.pattern.needs, start) < 0:
            return None
        return self._match_of(self.expression.search(text, start, timeout=self._timeout(text, start, limit)))

    def match(self, text: str, place: int, limit: float) -> Match | None:
        """The match that starts at `place`; raises TimeoutError past the limit."""
        return self._match_of(self.expression.match(text, place, timeout=self._timeout(text, place, limit)))

    def _match_of(self, match: Any) -> Match | None:
        if match is None:
            return None
        groups = match.groupdict().items() if self.groups else ()
        return match.start(), match.end(), {name: text for name, text in groups if text is not None}

    def _timeout(self, text: str, start: int, limit: float) -> float | None:
        # A time limit costs more than a short search.
        return None if len(text) - start <= self._safe_length else limit

    @cached_property
    def _safe_length(self) -> int:
        return self.pattern.safe_length

    def starts(self) -> dict[str, set[str]] | None:
        """The characters that a match can start with, each with those that can follow; None where any can.

        _BEYOND stands for everything that is not ASCII. At the very start of the text, a positional expression may
        match elsewhere too.
        """
        if self.literals is not None:
            by_character: dict[str, set[str]] = {}
            for literal in self.literals:
                by_character.setdefault(literal[0], set()).update(literal[1:2] or _ALPHABET)
            return by_character
        if self.pattern.patient or self.pattern.looks_behind:
            return None
        probe = regex.compile(self.pattern.edged, regex.DOTALL)
        before = ("a", " ") if self.pattern.positional else ("",)
        try:
            firsts = [char for char in _ASCII if _may_start(probe, before, char)]
            if len(firsts) == len(_ASCII):
                return None
            many = len(firsts) > _MAX_FIRSTS
            by_character = {
                first: {char for char in _ASCII if many or _may_start(probe, before, first + char)} | {_BEYOND}
                for first in firsts
            }
        except TimeoutError:
            return None
        return {**by_character, _BEYOND: set(_ALPHABET)}


def _may_start(probe: Any, contexts: tuple[str, ...], text: str) -> bool:
    return any(probe.match(before + text, len(before), partial=True, timeout=1.0) is not None for before in contexts)


def _class(chars: Iterable[str]) -> str:
    return "[" + "".join("\x80-\U0010ffff" if char == _BEYOND else re.escape(char) for char in sorted(chars)) + "]"


def _followed(seconds: frozenset[str], firsts: list[str]) -> str:
    after = f"(?<={_class(firsts)})"
    return after if seconds.issuperset(_ALPHABET) else rf"{after}(?=(\Z)|{_class(seconds)})"


class Watch:
    """The delimiters that can come next, and what tells fast that none of them does."""

    def __init__(self, delimiters: list[Delimiter]) -> None:
        self.delimiters = delimiters
        self.positional = any(delimiter.pattern.positional for delimiter in delimiters)
        self._patient = any(delimiter.pattern.patient for delimiter in delimiters)
        self._safe_length = min((item.pattern.safe_length for item in delimiters), default=0) // 2

    @cached_property
    def starts(self) -> re.Pattern[str] | None:
        """Finds the places where a delimiter could start; None where that may be anywhere.

        It looks at two characters, or at one at the end of the text, where a group takes part.
        """
        merged: dict[str, set[str]] = {}
        for delimiter in self.delimiters:
            firsts = delimiter.starts()
            if firsts is None:
                return None
            for first, seconds in firsts.items():
                merged.setdefault(first, set()).update(seconds)
        if not merged:
            return re.compile("(?!)")
        groups: dict[frozenset[str], list[str]] = {}
        for first, seconds in merged.items():
            groups.setdefault(frozenset(seconds), []).append(first)
        # One class in front, so that the scan runs over the text without trying alternatives.
        return re.compile(_class(merged) + "(?:" + "|".join(_followed(*group) for group in groups.items()) + ")")

    @cached_property
    def _finders(self) -> list[Any]:
        """Expressions that together match exactly where some delimiter does."""
        return self._merged([(delimiter, delimiter.source) for delimiter in self.delimiters])

    @cached_property
    def _probes(self) -> list[Any]:
        """Expressions that never match, and partially match where the answer is undecided."""
        return self._merged([(item, f"(?>{item.pattern.edged})(?!)") for item in self.delimiters])

    @staticmethod
    def _merged(sources: list[tuple[Delimiter, str]]) -> list[Any]:
        together = "|".join(f"(?:{source})" for item, source in sources if item.pattern.combines)
        alone = [source for item, source in sources if not item.pattern.combines]
        return [regex.compile(source, regex.DOTALL) for source in [*filter(None, [together]), *alone]]

    def plain_until(self, text: str, start: int, limit: float) -> tuple[int, bool]:
        """Up to where `text` is plain whatever follows, and whether a delimiter stands there rather than may stand."""
        if self._patient:
            return start, False
        timeout = None if len(text) - start <= self._safe_length else limit
        if self.starts is None or (self.positional and start == 0):
            return self._plain_anywhere(text, start, timeout)
        deadline = time.monotonic() + limit if timeout else None
        for count, match in enumerate(self.starts.finditer(text, start)):
            place = match.start()
            if match.lastindex or any(
                probe.match(text, place, partial=True, timeout=timeout) for probe in self._probes
            ):
                return place, False
            if any(finder.match(text, place, timeout=timeout) for finder in self._finders):
                return place, True
            if deadline and count % 64 == 0 and time.monotonic() > deadline:
                raise TimeoutError
        return len(text), False

    def _plain_anywhere(self, text: str, start: int, timeout: float | None) -> tuple[int, bool]:
        """How much of a text is plain where delimiters may start with anything: each finder searches for its own."""
        if any(probe.match(text, start, partial=True, timeout=timeout) for probe in self._probes):
            return start, False
        undecided = [probe.search(text, start, partial=True, timeout=timeout) for probe in self._probes]
        matches = [finder.search(text, start, timeout=timeout) for finder in self._finders]
        until = min((match.start() for match in undecided if match), default=len(text))
        first = min((match.start() for match in matches if match), default=until)
        return min(first, until), first < until
