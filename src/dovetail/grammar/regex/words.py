"""What is plain to see before patterns are multiplied: that some are words, and that some exclude each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from dovetail.grammar import ir
from dovetail.grammar.regex.syntax import Cat, Or, Rep, Syntax, Words, from_text

MAX_WORDS = 200  # of a pattern
MAX_LENGTH = 200  # of a word

Ranges = tuple[tuple[int, int], ...]


def sifted(wanted: Sequence[Syntax], barred: Sequence[Syntax]) -> tuple[Sequence[Syntax], list[Syntax]] | None:
    """The patterns without the barred ones that exclude a wanted one, all words in one; None where no text is left."""
    heads = [head for head in map(_head, wanted) if head]
    if any(_apart(one, other) for one, other in combinations(heads, 2)):
        return None
    left: list[Syntax] = []
    words: dict[str, None] = {}
    for pattern in _options(barred):
        if isinstance(pattern, Words):
            kept = [word for word in pattern.words if not heads or not _excluded(from_text(word), heads)]
            words |= dict.fromkeys(word for word in kept if len(word) <= MAX_LENGTH)
            left += [from_text(word) for word in kept if len(word) > MAX_LENGTH]
        elif not _excluded(pattern, heads):
            found = _words(pattern)
            if found is None:
                left.append(pattern)
            else:
                words |= dict.fromkeys(found)
    return wanted, [*left, Words(tuple(words))] if words else left


def _options(patterns: Iterable[Syntax]) -> Iterator[Syntax]:
    for pattern in patterns:
        if isinstance(pattern, Or):
            yield from _options(pattern.parts)
        else:
            yield pattern


def _excluded(pattern: Syntax, heads: list[list[Ranges]]) -> bool:
    return any(_apart(head, _head(pattern)) for head in heads)


def _words(node: Syntax) -> set[str] | None:
    """All texts of a pattern, or None where they are many or long."""
    match node:
        case ir.Chars(ranges):
            if sum(high - low + 1 for low, high in ranges) > MAX_WORDS:
                return None
            codes = (code for low, high in ranges for code in range(low, high + 1))
            return {chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF}
        case Cat(parts) if len(parts) <= MAX_LENGTH:
            found = {""}
            for part in parts:
                more = _words(part)
                if more is None or len(found) * len(more) > MAX_WORDS:
                    return None
                found = {first + second for first, second in product(found, more)}
            return found if _longest(found) <= MAX_LENGTH else None
        case Or(parts):
            found = set()
            for part in parts:
                more = _words(part)
                if more is None or len(found) + len(more) > MAX_WORDS:
                    return None
                found |= more
            return found
        case Rep(body, low, high) if high is not None and high <= MAX_LENGTH:
            once = _words(body)
            if once is None or _longest(once) * high > MAX_LENGTH or (len(once) > 1 and len(once) ** high > MAX_WORDS):
                return None
            return {"".join(parts) for times in range(low, high + 1) for parts in product(once, repeat=times)}
        case _:
            return None


def _longest(words: set[str]) -> int:
    return max(map(len, words), default=0)


def _head(node: Syntax) -> list[Ranges]:
    """The classes of the characters that every text of `node` begins with, as far as they are told one by one."""
    return _begin(node)[0]


def _begin(node: Syntax) -> tuple[list[Ranges], bool]:
    """The same, and whether nothing else is in `node`."""
    match node:
        case ir.Chars(ranges):
            return [ranges], True
        case Cat(parts):
            found: list[Ranges] = []
            for part in parts:
                more, whole = _begin(part)
                found += more
                if not whole:
                    return found, False
            return found, True
        case Or(parts) if parts:
            heads = [_head(part) for part in parts]
            shortest = min(map(len, heads))
            return [ir.chars(span for head in heads for span in head[at]).ranges for at in range(shortest)], False
        case Rep(body, low, high) if low:
            found, whole = _begin(body)
            return found, whole and low == high == 1
        case _:
            return [], False


def _apart(left: list[Ranges], right: list[Ranges]) -> bool:
    """Whether texts that begin so are never the same."""
    return any(not _meet(one, other) for one, other in zip(left, right, strict=False))


def _meet(left: Ranges, right: Ranges) -> bool:
    return any(low <= top and bottom <= high for low, high in left for bottom, top in right)
