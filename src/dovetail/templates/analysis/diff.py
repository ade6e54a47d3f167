"""Comparing renders: what they share at both ends, cut where no marker or word is torn."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Markers as models have them: in angle or square brackets of any kind, a name inside.
_MARKER = re.compile(r"<[^<>\s][^<>\n]{0,80}>|\[/?[A-Za-z_][^\[\]{}\"'\n]{0,40}\]|\]<\][^<>\[\]\s]+\[>\[")
_WORD = re.compile(r"[Zz]q\w*|(?:(?![Zz]q)\w)+")  # sentinels are no part of the words that they touch
_SEGMENT = re.compile(rf"{_MARKER.pattern}|\s+|{_WORD.pattern}|[^\w\s]")


def markers(text: str) -> list[str]:
    """The markers in a text, in order."""
    return [match[0] for match in _MARKER.finditer(text)]


def closers(marker: str) -> list[str]:
    """The markers that would close what this one opens, as their like are written."""
    signs = (
        ("<|", "<|/"),
        ("<", "</"),
        ("[", "[/"),
        ("START", "END"),
        ("start", "end"),
        ("BEGIN", "END"),
        ("begin", "end"),
    )
    return [marker.replace(sign, other, 1) for sign, other in signs if sign in marker]


def segments(text: str) -> list[str]:
    """A text as markers, words, white space and single signs."""
    return [match[0] for match in _SEGMENT.finditer(text)]


def shared_start(*texts: str) -> str:
    """The longest start that all texts have, without half of a marker or word."""
    size = min(map(len, texts), default=0)
    first = texts[0] if texts else ""
    for text in texts[1:]:
        size = next((i for i in range(size) if text[i] != first[i]), size)
    cut = size
    while True:
        best = min((_floor(text, cut) for text in texts), default=0)
        if best == cut:
            return first[:cut]
        cut = best


def common_header(*texts: str) -> str:
    """The longest start that all texts have, as the first one spells it; white space may differ."""
    exact = shared_start(*texts)
    ends = [[match.end() for match in _SEGMENT.finditer(text) if match[0].strip()] for text in texts]
    parts = [[part for part in segments(text) if part.strip()] for text in texts]
    size = min(map(len, parts))
    size = next((i for i in range(size) if any(part[i] != parts[0][i] for part in parts)), size)
    if size <= len([part for part in segments(exact) if part.strip()]):
        return exact
    end = ends[0][size - 1]
    return texts[0][: end + len(texts[0][end:]) - len(texts[0][end:].lstrip())]


def behind_header(header: str, otherwise: str, text: str) -> str:
    """A text without its header, whatever white space it has there; `otherwise` where it does not begin with it."""
    words = [re.escape(part) for part in segments(header) if part.strip()]
    match = re.match(r"\s*" + r"\s*".join(words), text) if words else None
    return text[match.end() :] if match else otherwise


def shared_end(*texts: str) -> str:
    """The longest end that all texts have, without half of a marker or word."""
    size = min(map(len, texts), default=0)
    first = texts[0] if texts else ""
    for text in texts[1:]:
        size = next((i for i in range(size) if text[-1 - i] != first[-1 - i]), size)
    cut = size
    while True:
        best = min((len(text) - _ceil(text, len(text) - cut) for text in texts), default=0)
        if best == cut:
            return first[len(first) - cut :]
        cut = best


def user_header(text: str) -> str:
    """The header of a user's turn at the end of a text, without the end of the turn before it; the text if none is."""
    word = text.lower().rfind("user")
    openers = [marker for marker in _MARKER.finditer(text) if marker.start() <= word]
    if openers and not text[openers[-1].end() : word].strip():
        return text[openers[-1].start() :]
    return text[max(word, 0) :]


def _floor(text: str, cut: int) -> int:
    """The last place up to `cut` that tears nothing."""
    for pattern in (_MARKER, _WORD):
        for match in pattern.finditer(text):
            if match.start() < cut < match.end():
                return match.start()
            if match.start() >= cut:
                break
    return cut


def _ceil(text: str, cut: int) -> int:
    """The first place from `cut` on that tears nothing."""
    for pattern in (_MARKER, _WORD):
        for match in pattern.finditer(text):
            if match.start() < cut < match.end():
                return match.end()
            if match.start() >= cut:
                break
    return cut


@dataclass(frozen=True, slots=True)
class ListLayout:
    """How items of the same kind follow each other: open, (begin item end) joined by separator, close."""

    open: str
    begin: str
    end: str
    separator: str
    close: str


def list_layout(before: str, between: str | None, after: str) -> ListLayout:
    """The layout of a list from the text before its first item, between two items and after the last.

    White space at the edge of an item is the separator's. Where no second item was seen, all belongs to the item.
    """
    if between is None:
        return ListLayout("", before, after, "", "")
    begin, end = shared_end(before, between), shared_start(between, after)
    over = len(begin) + len(end) - len(between)
    if over > 0 and re.search(r"\w\Z", end[: len(end) - over]):
        begin = begin[over:]  # both would take it: it closes what would end in the middle of a tag
    elif over > 0:
        end = end[: len(end) - over]  # or it is how the next tag begins
    separator = between[len(end) : len(between) - len(begin)]
    extra = begin[: len(begin) - len(begin.lstrip())]
    if extra and not separator.strip():
        begin, separator = begin[len(extra) :], separator + extra
    return ListLayout(before[: len(before) - len(begin)], begin, end, separator, after[len(end) :])
