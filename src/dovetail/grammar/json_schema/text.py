"""JSON text: the strings, numbers and whitespace that every lowered schema is made of.

These rules are made once and shared by all schemas, so that what the core learns about one string helps all strings.
Escapes must decode: a surrogate escape stands only in a pair, because a lone one denotes no Unicode text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from dovetail._core import Glance
from dovetail.grammar.ir import (
    EMPTY,
    MAX_CODE_POINT,
    Alt,
    Call,
    Chars,
    Codes,
    Lit,
    NewKey,
    Node,
    Repeat,
    Rule,
    Seq,
    Spelled,
    Spellings,
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

_RAW: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, MAX_CODE_POINT))
UNESCAPED = Chars(_RAW)
_SHORT = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
_PLANE_ZERO: Ranges = ((0x80, 0xD7FF), (0xE000, 0xFFFF))  # beyond ASCII
_ASTRAL: Ranges = ((0x10000, MAX_CODE_POINT),)
_ALL_DIGITS = 0xFFFF  # a bit for each hexadecimal one
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


def digit_blocks(low: int, high: int, base: int, count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Split low..high into blocks, each a range per digit of `count` digits in `base`."""
    if count == 0:
        yield ()
        return
    unit = base ** (count - 1)
    first, last = low // unit, high // unit
    if first == last:
        for rest in digit_blocks(low % unit, high % unit, base, count - 1):
            yield ((first, first), *rest)
        return
    if low % unit:
        for rest in digit_blocks(low % unit, unit - 1, base, count - 1):
            yield ((first, first), *rest)
        first += 1
    cut = high % unit != unit - 1
    if first <= last - cut:
        yield ((first, last - cut), *(((0, base - 1),) * (count - 1)))
    if cut:
        for rest in digit_blocks(0, high % unit, base, count - 1):
            yield ((last, last), *rest)


_HEX = ((0, 10, 0x30), (10, 6, 0x41), (10, 6, 0x61))  # the first digit, how many, the letter of the first


@cache
def _nibble(digits: int) -> Node:
    """One hexadecimal digit of those whose bits are set, in either case."""
    ranges: list[tuple[int, int]] = []
    for first, count, letter in _HEX:
        left = digits >> first & (1 << count) - 1
        while left:  # most objects need a few new ones, so each run of bits is taken at once
            low = (left & -left).bit_length() - 1
            high = low + (~(left >> low) & (left >> low) + 1).bit_length() - 1
            ranges.append((letter + low, letter + high - 1))
            left = left >> high << high
    return one(tuple(ranges))


def _between(low: int, high: int) -> Node:
    return _nibble((2 << high) - (1 << low))


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


@lru_cache(maxsize=4096)
def _digits(low: int, high: int) -> Node:
    """Four hexadecimal digits that denote low..high."""
    return alt(*[concat(*(_between(*digit) for digit in block)) for block in digit_blocks(low, high, 16, 4)])


@lru_cache(maxsize=4096)
def _unit(low: int, high: int) -> Node:
    """The same behind `u`."""
    return concat(Lit(b"u"), _digits(low, high))


@lru_cache(maxsize=4096)
def _pairs(low: int, high: int) -> tuple[Node, ...]:
    """Surrogate pairs, without the first backslash and `u`, that denote low..high beyond the basic plane."""
    return tuple(
        concat(_digits(0xD800 + first, 0xD800 + last), Lit(b"\\"), _unit(0xDC00 + start, 0xDC00 + end))
        for (first, last), (start, end) in digit_blocks(low - 0x10000, high - 0x10000, 1024, 2)
    )


@lru_cache(maxsize=4096)
def escapes(ranges: Ranges) -> tuple[Node, ...]:
    """The escapes of the characters of `ranges`, without the backslash."""
    found: list[Node] = []
    rows = _ascii_rows(ranges)
    if any(rows):
        short = sorted(ord(letter) for code, letter in _SHORT.items() if rows[code >> 4] >> (code & 15) & 1)
        if short:
            found.append(Chars(tuple((letter, letter) for letter in short)))
        found.append(concat(Lit(b"u00"), alt(*_ascii_digits(rows))))
    if ranges and ranges[-1][1] > 0x7F:
        # Most ranges leave out a few letters: what lies beyond ASCII is then the same, and known.
        beyond = tuple([pair for pair in ranges if pair[1] > 0x7F])
        found += (_unit(low, high) for low, high in intersect(beyond, _PLANE_ZERO))
        for low, high in intersect(beyond, _ASTRAL):
            found += (concat(Lit(b"u"), pair) for pair in _pairs(low, high))
    return tuple(found)


def _ascii_rows(ranges: Ranges) -> list[int]:
    """The ASCII characters of `ranges` by their first hexadecimal digit: a bit for each second one."""
    rows = [0] * 8
    for low, high in ranges:
        if low > 0x7F:
            break
        for row in range(low >> 4, min(high >> 4, 7) + 1):
            first, last = max(low - 16 * row, 0), min(high - 16 * row, 15)
            rows[row] |= (2 << last) - (1 << first)
    return rows


def _ascii_digits(rows: list[int]) -> list[Node]:
    """The two hexadecimal digits of these characters; rows that are alike are one way."""
    alike: dict[int, int] = {}
    for row, digits in enumerate(rows):
        if digits:
            alike[digits] = alike.get(digits, 0) | 1 << row
    return [Seq((_nibble(first), _nibble(digits))) for digits, first in alike.items()]


@lru_cache(maxsize=4096)
def raw(ranges: Ranges) -> tuple[Node, ...]:
    """The characters of `ranges` that may stand in a JSON string as they are: one class, or nothing."""
    plain = intersect(ranges, _RAW)
    return (one(plain),) if plain else ()


@lru_cache(maxsize=4096)
def spell(ranges: Ranges) -> Node:
    """One character of `ranges` inside a JSON string, raw or in any of its escapes."""
    return alt(*raw(ranges), concat(BACKSLASH, alt(*escapes(ranges))))


def one(ranges: Ranges) -> Node:
    """One raw character of `ranges`."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return Lit(chr(ranges[0][0]).encode())
    return Chars(ranges)


@cache
def _beyond_ascii() -> Node:
    """The digits of characters beyond ASCII, the same for all letters: a call keeps the others small."""
    ways = [_digits(low, high) for low, high in _PLANE_ZERO]
    return Call(Rule("digits", alt(*ways, *_pairs(*_ASTRAL[0]))))


@cache
def _short(letters: str) -> Node:
    """What is behind the backslash in escapes of two letters, but for those of `letters`."""
    return chars((ord(letter), ord(letter)) for code, letter in _SHORT.items() if chr(code) not in letters)


class _Others(dict[str, Rule]):
    """The escapes, without their backslash, of all characters but some letters; made when first needed."""

    def __missing__(self, letters: str) -> Rule:
        rows = [_ALL_DIGITS] * 8
        for code in letters.encode():
            rows[code >> 4] ^= 1 << (code & 15)
        short = _short("".join([chr(code) for code in _SHORT if chr(code) in letters]))
        digits = Alt((Seq((Lit(b"00"), alt(*_ascii_digits(rows)))), _beyond_ascii()))
        self[letters] = Rule("escape", Alt((short, Seq((Lit(b"u"), digits)))))
        return self[letters]


class _Escapes(Spellings):
    """The spellings of ASCII characters in a JSON string, made when first needed; all grammars share their rules."""

    def __missing__(self, char: str) -> tuple[bytes, Rule]:
        ranges = ((ord(char), ord(char)),)
        self[char] = char.encode() if raw(ranges) else b"", Rule("escape", alt(*escapes(ranges)))
        return self[char]


_CODES = Codes(
    tuple([(code, ord(letter)) for code, letter in _SHORT.items()]), b"u00", Seq((Lit(b"u"), _beyond_ascii()))
)
ESCAPES = _Escapes(BACKSLASH.data, Chars(_RAW), _Others(), _CODES)


def spell_text(text: str) -> Node:
    """The inside of a JSON string that denotes `text`, in any spelling."""
    return Seq(tuple([spell(((ord(char), ord(char)),)) for char in text]))


def quoted(text: str) -> Node:
    """A JSON string that denotes `text`, in any spelling."""
    if text.isascii():
        return Spelled(text, ESCAPES, QUOTE.data)
    text.encode()  # raises where half of a surrogate pair stands alone
    return _quoted(text)


@lru_cache(maxsize=1024)
def _quoted(text: str) -> Node:
    # Thousands of other characters may stand at one place, too many for a rule each.
    return Seq((QUOTE, *[spell(((ord(char), ord(char)),)) for char in text], QUOTE))


CHAR = spell(ALL)
DIGIT = Chars(((0x30, 0x39),))
ZERO = Lit(b"0")
_NONZERO = Chars(((0x31, 0x39),))
_MINUS = optional(Lit(b"-"))
_DIGITS = Alt((ZERO, Seq((_NONZERO, star(DIGIT)))))
_EXPONENT = Chars(((0x45, 0x45), (0x65, 0x65)))
_PLUS = Lit(b"+")
ZEROS = optional(Seq((Lit(b"."), Repeat(ZERO, 1, None))))

STRING: Node = Call(Rule("string", Seq((QUOTE, star(CHAR), QUOTE))))
STRING_TAIL: Node = Call(Rule("string_tail", Seq((star(CHAR), QUOTE))))
NUMBER = Call(
    Rule(
        "number",
        Seq(
            (
                _MINUS,
                _DIGITS,
                optional(Seq((Lit(b"."), Repeat(DIGIT, 1, None)))),
                optional(Seq((_EXPONENT, optional(Chars(((0x2B, 0x2B), (0x2D, 0x2D)))), Repeat(DIGIT, 1, None)))),
            )
        ),
    )
)
# An exponent of two digits keeps the value within a 64-bit float, where every reader still sees an integer.
INTEGER = Call(
    Rule(
        "integer",
        Seq((_MINUS, _DIGITS, ZEROS, optional(Seq((_EXPONENT, optional(_PLUS), Repeat(DIGIT, 1, 2)))))),
    )
)
# Draft 4 takes no fraction and no exponent for an integer, not even zeros.
BARE_INTEGER = Call(Rule("integer", Seq((_MINUS, _DIGITS))))
OPEN, CLOSE = Lit(b"{"), Lit(b"}")
FIRST, LAST = Lit(b"["), Lit(b"]")
TRUE, FALSE, NULL = Lit(b"true"), Lit(b"false"), Lit(b"null")
BOOLEAN = Alt((TRUE, FALSE))
COMMA, COLON = Lit(b","), Lit(b":")


class KeyEnd(NamedTuple):
    """The end of a member of an object; a key that is not declared has to be new."""

    quote: Node  # from the quote behind a key that is not declared
    inside: Node  # from anywhere inside such a key
    declared: Node = QUOTE  # from the quote behind a declared key
    behind: Node = EMPTY  # behind that quote


def key_end(colon: Node, value: Node, *ws: Node) -> KeyEnd:
    """What ends a member with this value; as rules, so that masks are shared by all members that end alike."""
    behind = Call(Rule("behind_key", concat(colon, value, *ws)))
    inside = Call(Rule("key_tail", Seq((STRING_TAIL, NEW_KEY, behind))))
    declared = Call(Rule("key_end", Seq((QUOTE, behind))))
    return KeyEnd(Seq((QUOTE, NEW_KEY, behind)), inside, declared, behind)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The shared rules for one setting of whitespace and excludes."""

    ws: tuple[Node, ...]  # nothing where no whitespace is allowed
    comma: tuple[Node, ...]
    colon: Node
    string: Node
    value: Node
    object: Node
    array: Node
    excludes: tuple[bytes, ...]
    bare: bool  # whether integers have no fraction and no exponent, as in draft 4
    by_type: dict[str, Node]
    key_ends: dict[int, KeyEnd]  # of the values above, by identity
    lists: dict[str, Node]  # arrays of these types
    scalars: dict[Any, Node]  # by what their schemas say
    glance: Glance


@lru_cache(maxsize=64)
def pieces(max_whitespace: int, excludes: tuple[bytes, ...], bare: bool = False) -> Pieces:
    """The shared rules where at most `max_whitespace` blanks stand in a row and strings contain none of `excludes`."""
    ws: tuple[Node, ...] = ()
    if max_whitespace:
        blanks = Chars(((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)))
        ws = (Call(Rule("ws", Repeat(blanks, 0, max_whitespace))),)
    comma, colon = (COMMA, *ws), seq(*ws, COLON, *ws)
    string = STRING
    if excludes:
        string = Call(Rule("string", Seq((QUOTE, Without(star(CHAR), excludes), QUOTE))))
    value = Rule("value", EMPTY)
    member: tuple[Node, ...] = (string, NEW_KEY, colon, Call(value), *ws)
    item: tuple[Node, ...] = (Call(value), *ws)
    members = optional(Seq((*member, star(Seq((*comma, *member))))))
    items = optional(Seq((*item, star(Seq((*comma, *item))))))
    anything = Call(Rule("object", Seq((OPEN, *ws, members, CLOSE))))
    array = Call(Rule("array", Seq((FIRST, *ws, items, LAST))))
    value.body = Alt((string, NUMBER, anything, array, TRUE, FALSE, NULL))
    by_type: dict[str, Node] = {
        "string": string,
        "number": NUMBER,
        "integer": BARE_INTEGER if bare else INTEGER,
        "boolean": BOOLEAN,
        "null": NULL,
        "object": anything,
        "array": array,
    }
    any_value = Call(value)
    key_ends = {id(node): key_end(colon, node, *ws) for node in (any_value, *by_type.values())}
    lists: dict[str, Node] = {}
    glance = Glance(by_type, key_ends, lists, any_value, ws, comma, colon, bool(excludes))
    return Pieces(
        ws, comma, colon, string, any_value, anything, array, excludes, bare, by_type, key_ends, lists, {}, glance
    )
