"""The characters, strings and numbers that every lowered schema is made of.

These rules are made once and shared by all schemas, so that what the core learns about one string helps all strings.
What a schema declares or restricts has one spelling, in JSON that of `json.dumps(value, ensure_ascii=False)`; a string
about which nothing but its length is said may also use the escapes of its syntax, in JSON those of RFC 8259. A
surrogate escape stands only in a pair, because a lone one denotes no Unicode text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from dovetail.grammar import regex
from dovetail.grammar.ir import (
    MAX_CODE_POINT,
    Alt,
    Call,
    Lit,
    NewKey,
    Node,
    Rule,
    Seq,
    alt,
    complement,
    lit,
    seq,
    star,
)
from dovetail.grammar.regex.charset import Ranges
from dovetail.layouts.styles import escapes

ALL: Ranges = ((0, MAX_CODE_POINT),)

BACKSLASH = Lit(b"\\")
NEW_KEY = NewKey()  # of which there are infinitely many, whatever comes first
NEW_KEY_OF_FEW = NewKey(False)


def intersect(left: Ranges, right: Ranges) -> Ranges:
    """What two sorted lists of ranges have in common, of which one is short."""
    common: list[tuple[int, int]] = []
    for first, last in left:
        for low, high in right:
            if low > last:
                break
            if high >= first:
                common.append((first if first > low else low, last if last < high else high))
    return tuple(common)


@lru_cache(maxsize=1024)
def _escape(escapes: frozenset[str]) -> Node:
    """One of these escapes behind its backslash; a call, because most patterns hold the same."""
    return Call(Rule("escape", alt(*[lit(name[1:]) for name in sorted(escapes)])))


class Quotes:
    """Strings between one kind of quotes, in which some characters are written by a backslash escape.

    In a free string any character may also be written by a backslash and what the pattern `free_escape` matches.
    """

    def __init__(self, mark: str, escapes: Mapping[int, str], free_escape: str) -> None:
        self.mark = Lit(mark.encode())
        self._escapes = escapes
        self.unescaped = complement([(0xD800, 0xDFFF), *((code, code) for code in escapes)])
        self.free_char = Alt((self.unescaped, Seq((BACKSLASH, regex.parse(free_escape)))))
        self.char = canonical(ALL, self)
        self.escape = _escape(frozenset(escapes.values()))  # of any character that has one
        self.tail = Call(Rule("string_tail", Seq((star(self.char), self.mark))))

    def escape_of(self, ranges: Ranges) -> Node | None:
        """The escapes of the characters of `ranges` that need one."""
        names = [name for code, name in self._escapes.items() if any(low <= code <= high for low, high in ranges)]
        return Seq((BACKSLASH, _escape(frozenset(names)))) if names else None

    def spelled(self, text: str) -> bytes:
        """The canonical spelling of a text between the quotes; raises where a surrogate stands alone."""
        return (text if text.isidentifier() else text.translate(self._escapes)).encode()  # most keys are

    def around(self, inside: bytes) -> Node:
        """What is spelled, between the quotes."""
        return Lit(self.mark.data + inside + self.mark.data)


class RawQuotes:
    """Strings between one kind of quotes that hold any text up to the next quote, as a special token or spelled."""

    def __init__(self, mark: str) -> None:
        self.mark = Lit(mark.encode(), special=True)

    def spelled(self, text: str) -> bytes | None:
        """The text itself, which is None where it would end before its end."""
        data = text.encode()
        return data if (data + self.mark.data).find(self.mark.data) == len(data) else None

    def around(self, inside: bytes) -> Node:
        """A text between the quotes."""
        return Seq((self.mark, Lit(inside), self.mark)) if inside else Seq((self.mark, self.mark))


AnyQuotes = Quotes | RawQuotes


@lru_cache(maxsize=4096)
def canonical(ranges: Ranges, quotes: Quotes) -> Node:
    """One character of `ranges` inside a string, in its one canonical spelling."""
    unescaped, escape = intersect(ranges, quotes.unescaped.ranges), quotes.escape_of(ranges)
    ways = [regex.chars(unescaped)] if unescaped else []
    return alt(*ways, *([] if escape is None else [escape]))


_HEX = "[0-9A-Fa-f]"
_UNIT = rf"[0-9A-CEFa-cef]{_HEX}{{3}}|[Dd][0-7]{_HEX}{{2}}|[Dd][89ABab]{_HEX}{{2}}\\u[Dd][C-Fc-f]{_HEX}{{2}}"
FREE_ESCAPE = rf'["\\/bfnrt]|u({_UNIT})'
JSON_QUOTES = Quotes('"', escapes('"'), FREE_ESCAPE)
QUOTE = JSON_QUOTES.mark

NUMBER = Call(Rule("number", regex.parse(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([Ee][+-]?[0-9]+)?")))
INTEGER = Call(Rule("integer", regex.parse(r"0|-?[1-9][0-9]*")))
OPEN, CLOSE = Lit(b"{"), Lit(b"}")
FIRST, LAST = Lit(b"["), Lit(b"]")


class KeyEnd(NamedTuple):
    """The end of a member of a JSON object; a key that is not declared has to be new."""

    quote: Node  # from the quote behind a key that is not declared
    inside: Node  # from anywhere inside such a key
    declared: Node  # from the quote behind a declared key
    after: Node  # after that quote


def key_end(colon: Node, value: Node, *ws: Node) -> KeyEnd:
    """What ends a member with this value; as rules, so that masks are shared by all members that end alike."""
    after = Call(Rule("behind_key", seq(colon, value, *ws)))
    inside = Call(Rule("key_tail", Seq((JSON_QUOTES.tail, NEW_KEY, after))))
    declared = Call(Rule("key_end", Seq((QUOTE, after))))
    return KeyEnd(Seq((QUOTE, NEW_KEY, after)), inside, declared, after)
