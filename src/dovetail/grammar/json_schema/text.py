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

from dovetail.grammar.ir import (
    EMPTY,
    MAX_CODE_POINT,
    Alt,
    Call,
    Chars,
    Lit,
    NewKey,
    Node,
    Repeat,
    Rule,
    Seq,
    alt,
    chars,
    complement,
    optional,
    star,
)
from dovetail.layouts.styles import escapes

Ranges = tuple[tuple[int, int], ...]

ALL: Ranges = ((0, MAX_CODE_POINT),)
DEFAULT_WHITESPACE = 20

BACKSLASH = Lit(b"\\")
NEW_KEY = NewKey()  # of which there are infinitely many, whatever comes first
NEW_KEY_OF_FEW = NewKey(False)


def intersect(left: Ranges, right: Ranges) -> Ranges:
    """What two sorted lists of ranges have in common, of which one is short."""
    found: list[tuple[int, int]] = []
    for first, last in left:
        for low, high in right:
            if low > last:
                break
            if high >= first:
                found.append((first if first > low else low, last if last < high else high))
    return tuple(found)


def one(ranges: Ranges) -> Node:
    """One character of `ranges` as it is."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return Lit(chr(ranges[0][0]).encode())
    return Chars(ranges)


def concat(*parts: Node) -> Node:
    """A sequence in which neighbouring literals are one."""
    flat: list[Node] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Seq) else (part,):
            last = flat[-1] if flat else EMPTY
            if isinstance(piece, Lit) and isinstance(last, Lit) and piece.special == last.special:
                flat[-1] = Lit(last.data + piece.data, last.special)
            else:
                flat.append(piece)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


@lru_cache(maxsize=1024)
def _escape(escapes: frozenset[str]) -> Node:
    """One of these escapes behind its backslash; a call, because most patterns hold the same."""
    short = chars((ord(name[1]), ord(name[1])) for name in escapes if len(name) == 2)
    ways = [one(short.ranges)] if short.ranges else []
    for head in ("\\u000", "\\u001"):
        digits = [ord(name[-1]) for name in escapes if name.startswith(head)]
        if digits:
            ways.append(concat(Lit(head[1:].encode()), one(chars(zip(digits, digits, strict=True)).ranges)))
    return Call(Rule("escape", alt(*ways)))


class Quotes:
    """Strings between one kind of quotes, in which some characters are written by a backslash escape.

    In a free string any character may also be written by one of `free_escapes`.
    """

    def __init__(self, mark: str, escapes: Mapping[int, str], free_escapes: Node) -> None:
        self.mark = Lit(mark.encode())
        self._escapes = escapes
        self.unescaped = complement([(0xD800, 0xDFFF), *((code, code) for code in escapes)])
        self.free_char = Alt((self.unescaped, Seq((BACKSLASH, free_escapes))))
        self.char = canonical(ALL, self)
        self.escape = _escape(frozenset(escapes.values()))  # of any character that has one
        self.tail = Call(Rule("string_tail", Seq((star(self.char), self.mark))))

    def escape_of(self, ranges: Ranges) -> Node | None:
        """The escapes of the characters of `ranges` that need one."""
        found = [name for code, name in self._escapes.items() if any(low <= code <= high for low, high in ranges)]
        return Seq((BACKSLASH, _escape(frozenset(found)))) if found else None

    def spelled(self, text: str) -> bytes:
        """The canonical spelling of a text between the quotes; raises where a surrogate stands alone."""
        return text.translate(self._escapes).encode()

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
    plain, escape = intersect(ranges, quotes.unescaped.ranges), quotes.escape_of(ranges)
    ways = [one(plain)] if plain else []
    return alt(*ways, *([] if escape is None else [escape]))


def _hex(letters: str) -> Chars:
    return chars((ord(char), ord(char)) for letter in letters for char in {letter, letter.lower()})


_DIGIT = "0123456789ABCDEF"
_ANY, _D = _hex(_DIGIT), _hex("D")
_UNIT = Alt(
    (
        Seq((_hex(_DIGIT.replace("D", "")), _ANY, _ANY, _ANY)),
        Seq((_D, _hex("01234567"), _ANY, _ANY)),
        Seq((_D, _hex("89AB"), _ANY, _ANY, Lit(b"\\u"), _D, _hex("CDEF"), _ANY, _ANY)),
    )
)
FREE_ESCAPE = Alt((chars((ord(char), ord(char)) for char in '"\\/bfnrt'), Seq((Lit(b"u"), _UNIT))))
JSON_QUOTES = Quotes('"', escapes('"'), FREE_ESCAPE)
QUOTE = JSON_QUOTES.mark
DIGIT = Chars(((0x30, 0x39),))
_NONZERO = Chars(((0x31, 0x39),))
_MINUS = optional(Lit(b"-"))
_WHOLE = Seq((_NONZERO, star(DIGIT)))
_FRACTION = Seq((Lit(b"."), Repeat(DIGIT, 1, None)))
_SIGN = optional(Chars(((0x2B, 0x2B), (0x2D, 0x2D))))
_EXPONENT = Seq((Chars(((0x45, 0x45), (0x65, 0x65))), _SIGN, Repeat(DIGIT, 1, None)))

NUMBER = Call(Rule("number", Seq((_MINUS, Alt((Lit(b"0"), _WHOLE)), optional(_FRACTION), optional(_EXPONENT)))))
INTEGER = Call(Rule("integer", Alt((Lit(b"0"), Seq((_MINUS, _WHOLE))))))
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
    after = Call(Rule("behind_key", concat(colon, value, *ws)))
    inside = Call(Rule("key_tail", Seq((JSON_QUOTES.tail, NEW_KEY, after))))
    declared = Call(Rule("key_end", Seq((QUOTE, after))))
    return KeyEnd(Seq((QUOTE, NEW_KEY, after)), inside, declared, after)
