"""JSON text: the strings, numbers and white space that every lowered schema is made of.

These rules are made once and shared by all schemas, so that what the core learns about one string helps all strings.
What a schema declares or restricts has one spelling, that of `json.dumps(value, ensure_ascii=False)`; a string about
which nothing but its length is said may also use the escapes of RFC 8259. A surrogate escape stands only in a pair,
because a lone one denotes no Unicode text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, NamedTuple

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
    Without,
    alt,
    chars,
    optional,
    seq,
    star,
)

Ranges = tuple[tuple[int, int], ...]

ALL: Ranges = ((0, MAX_CODE_POINT),)
DEFAULT_WHITESPACE = 20

UNESCAPED = Chars(((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, MAX_CODE_POINT)))
_SHORT = {0x22: '"', 0x5C: "\\", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
_ESCAPED = (*range(0x20), 0x22, 0x5C)  # what cannot stand in a JSON string as it is
BACKSLASH = Lit(b"\\")
QUOTE = Lit(b'"')
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
            if flat and isinstance(piece, Lit) and isinstance(last := flat[-1], Lit):
                flat[-1] = Lit(last.data + piece.data)
            else:
                flat.append(piece)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def encoded(text: str) -> bytes:
    """The canonical JSON string that denotes `text`, quotes included; raises where a surrogate stands alone."""
    return encode_basestring(text).encode()


def quoted(text: str) -> Lit:
    """The JSON string that denotes `text`."""
    return Lit(encoded(text))


@lru_cache(maxsize=4096)
def canonical(ranges: Ranges) -> Node:
    """One character of `ranges` inside a JSON string, in its one canonical spelling."""
    plain = intersect(ranges, UNESCAPED.ranges)
    escaped = tuple([code for code in _ESCAPED if any(low <= code <= high for low, high in ranges)])
    ways = [one(plain)] if plain else []
    return alt(*ways, Seq((BACKSLASH, _escape(escaped)))) if escaped else alt(*ways)


@lru_cache(maxsize=1024)
def _escape(codes: tuple[int, ...]) -> Node:
    """What follows the backslash of the escapes of these characters; a call, because most patterns hold the same."""
    short = chars((ord(_SHORT[code]), ord(_SHORT[code])) for code in codes if code in _SHORT)
    ways = [one(short.ranges)] if short.ranges else []
    for row in (0, 1):
        digits = [ord(f"{code & 15:x}") for code in codes if code >> 4 == row and code not in _SHORT]
        if digits:
            ways.append(concat(Lit(b"u00%d" % row), one(chars(zip(digits, digits, strict=True)).ranges)))
    return Call(Rule("escape", alt(*ways)))


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
_FREE_ESCAPE = Alt((chars((ord(char), ord(char)) for char in '"\\/bfnrt'), Seq((Lit(b"u"), _UNIT))))
FREE_CHAR: Node = Alt((UNESCAPED, Seq((BACKSLASH, _FREE_ESCAPE))))
CHAR = canonical(ALL)
ESCAPE = _escape(_ESCAPED)  # of any character that has one
DIGIT = Chars(((0x30, 0x39),))
_NONZERO = Chars(((0x31, 0x39),))
_MINUS = optional(Lit(b"-"))
_WHOLE = Seq((_NONZERO, star(DIGIT)))
_FRACTION = Seq((Lit(b"."), Repeat(DIGIT, 1, None)))
_SIGN = optional(Chars(((0x2B, 0x2B), (0x2D, 0x2D))))
_EXPONENT = Seq((Chars(((0x45, 0x45), (0x65, 0x65))), _SIGN, Repeat(DIGIT, 1, None)))

STRING: Node = Call(Rule("string", Seq((QUOTE, star(FREE_CHAR), QUOTE))))
KEY: Node = Call(Rule("string", Seq((QUOTE, star(CHAR), QUOTE))))
CANONICAL_TAIL: Node = Call(Rule("string_tail", Seq((star(CHAR), QUOTE))))
NUMBER = Call(Rule("number", Seq((_MINUS, Alt((Lit(b"0"), _WHOLE)), optional(_FRACTION), optional(_EXPONENT)))))
INTEGER = Call(Rule("integer", Alt((Lit(b"0"), Seq((_MINUS, _WHOLE))))))
OPEN, CLOSE = Lit(b"{"), Lit(b"}")
FIRST, LAST = Lit(b"["), Lit(b"]")
TRUE, FALSE, NULL = Lit(b"true"), Lit(b"false"), Lit(b"null")
BOOLEAN = Alt((TRUE, FALSE))
COMMA, COLON = Lit(b","), Lit(b":")


class KeyEnd(NamedTuple):
    """The end of a member of an object; a key that is not declared has to be new."""

    quote: Node  # from the quote behind a key that is not declared
    inside: Node  # from anywhere inside such a key
    declared: Node  # from the quote behind a declared key
    behind: Node  # behind that quote


def key_end(colon: Node, value: Node, *ws: Node) -> KeyEnd:
    """What ends a member with this value; as rules, so that masks are shared by all members that end alike."""
    behind = Call(Rule("behind_key", concat(colon, value, *ws)))
    inside = Call(Rule("key_tail", Seq((CANONICAL_TAIL, NEW_KEY, behind))))
    declared = Call(Rule("key_end", Seq((QUOTE, behind))))
    return KeyEnd(Seq((QUOTE, NEW_KEY, behind)), inside, declared, behind)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The shared rules for one setting of white space and excludes."""

    ws: tuple[Node, ...]  # nothing where no white space is allowed
    comma: tuple[Node, ...]
    colon: Node
    string: Node
    key: Node
    value: Node
    object: Node
    array: Node
    excludes: tuple[bytes, ...]
    by_type: dict[str, Node]
    key_ends: dict[int, KeyEnd]  # of the values above, by identity
    scalars: dict[Any, Node]  # by what their schemas say


@lru_cache(maxsize=64)
def pieces(max_whitespace: int, excludes: tuple[bytes, ...]) -> Pieces:
    """The shared rules where at most `max_whitespace` blanks stand in a row and strings contain none of `excludes`."""
    ws: tuple[Node, ...] = ()
    if max_whitespace:
        blanks = Chars(((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)))
        ws = (Call(Rule("ws", Repeat(blanks, 0, max_whitespace))),)
    comma, colon = (COMMA, *ws), seq(*ws, COLON, *ws)
    string, key = STRING, KEY
    if excludes:
        string = Call(Rule("string", Seq((QUOTE, Without(star(FREE_CHAR), excludes), QUOTE))))
        key = Call(Rule("string", Seq((QUOTE, Without(star(CHAR), excludes), QUOTE))))
    value = Rule("value", EMPTY)
    member: tuple[Node, ...] = (key, NEW_KEY, colon, Call(value), *ws)
    item: tuple[Node, ...] = (Call(value), *ws)
    members = optional(Seq((*member, star(Seq((*comma, *member))))))
    items = optional(Seq((*item, star(Seq((*comma, *item))))))
    anything = Call(Rule("object", Seq((OPEN, *ws, members, CLOSE))))
    array = Call(Rule("array", Seq((FIRST, *ws, items, LAST))))
    value.body = Alt((string, NUMBER, anything, array, TRUE, FALSE, NULL))
    by_type: dict[str, Node] = {
        "string": string,
        "number": NUMBER,
        "integer": INTEGER,
        "boolean": BOOLEAN,
        "null": NULL,
        "object": anything,
        "array": array,
    }
    any_value = Call(value)
    key_ends = {id(node): key_end(colon, node, *ws) for node in (any_value, *by_type.values())}
    return Pieces(ws, comma, colon, string, key, any_value, anything, array, excludes, by_type, key_ends, {})
