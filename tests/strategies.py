"""Random grammars, formats, vocabularies and outputs, small enough for the slow matcher and mean enough to matter.

Everything is made by functions that take `Dice`, so that hypothesis (which shrinks) and long seeded runs (which do not)
throw the same things.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from dovetail.grammar import ir

T = TypeVar("T")
# Sizes around the edges of a 32-bit mask word.
TABLE_SIZES = (1, 31, 32, 33, 64, 65)
CHARACTERS = ("a", "b", "c", "<", ">", "/", "1", '"', " ", "é", "€", "𝄞")
WORDS = ("a", "b", "ab", "abc", "ba", "<a>", "<b>", "</a>", "<", "</", "é", "€b", "a𝄞", "bc")
SPECIAL = ("<a>", "</a>", "<b>", "<|end|>", "ab")


class Dice(Protocol):
    def number(self, low: int, high: int) -> int: ...

    def pick(self, options: Sequence[T]) -> T: ...


class SeededDice:
    """Throws that repeat for the same seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)


class DrawnDice:
    """Throws that hypothesis makes and shrinks."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]


@dataclass(frozen=True)
class Tokens:
    """What a vocabulary is made of."""

    tokens: tuple[bytes, ...]
    special_tokens: dict[str, int]
    stop_token_ids: tuple[int, ...]


def make_tokens(dice: Dice, size: int | None = None) -> Tokens:
    """Few tokens over few characters: cut inside characters, doubled, empty, special, ends of output."""
    count = size if size is not None else dice.pick((*TABLE_SIZES, 5, 12, 20))
    tokens = [_make_token(dice) for _ in range(count)]
    free = list(range(count))
    special = {}
    for name in SPECIAL:
        if len(free) > 1 and dice.number(0, 2) == 0:
            special[name] = free.pop(dice.number(0, len(free) - 1))
    stops = tuple(free.pop(dice.number(0, len(free) - 1)) for _ in range(dice.number(1, 2)) if free)
    # A special token may end the output too.
    if special and dice.number(0, 4) == 0:
        stops += (dice.pick(sorted(special.values())),)
    return Tokens(tuple(tokens), special, stops)


def _make_token(dice: Dice) -> bytes:
    kind = dice.number(0, 9)
    if kind == 0:
        return b""
    if kind <= 3:
        return dice.pick(CHARACTERS).encode()
    data = b"".join(dice.pick(CHARACTERS).encode() for _ in range(dice.number(1, 3)))
    if kind <= 6:
        start = dice.number(0, len(data) - 1)
        return data[start : dice.number(start + 1, len(data))]
    return dice.pick(WORDS).encode() + (data if kind == 9 else b"")


# Grammars.


def make_rule(dice: Dice, *, token_level: bool = False, captures: bool = True) -> ir.Rule:
    """A few rules that may call each other and themselves, the first of which is the root."""
    rules = [ir.Rule(f"r{index}", ir.EMPTY) for index in range(dice.number(1, 3))]
    maker = _Nodes(dice, rules, token_level, captures)
    for rule in rules:
        rule.body = maker.node(dice.number(1, 3))
    return rules[0]


class _Nodes:
    def __init__(self, dice: Dice, rules: list[ir.Rule], token_level: bool, captures: bool) -> None:
        self.dice, self.rules, self.token_level, self.captures = dice, rules, token_level, captures

    def node(self, depth: int) -> ir.Node:
        dice = self.dice
        if depth == 0:
            return self.leaf()
        match dice.number(0, 9):
            case 0 | 1 | 2:
                return ir.Seq(tuple(self.node(depth - 1) for _ in range(dice.number(1, 3))))
            case 3 | 4:
                return ir.Alt(tuple(self.node(depth - 1) for _ in range(dice.number(1, 3))))
            case 5:
                low = dice.number(0, 2)
                return ir.Repeat(self.node(depth - 1), low, dice.pick((None, low, low + 1, low + 3)))
            case 6:
                if not self.captures:
                    return self.leaf()
                return self.named(depth) if dice.number(0, 1) else ir.Capture(self.name(), self.node(depth - 1))
            case 7:
                return self.text(depth) if dice.number(0, 2) else self.any_order(depth)
            case 8:
                return ir.Without(self.flat(depth - 1), self.words(1, 2))
            case _:
                return self.leaf()

    def leaf(self) -> ir.Node:
        dice = self.dice
        match dice.number(0, 8 if self.token_level else 7):
            case 7:
                return dice.pick((self.unlisted, lambda: make_measured(dice)))()
            case 0 | 1:
                return ir.Lit(dice.pick(WORDS).encode(), dice.number(0, 1) == 1)
            case 2:
                return self.characters()
            case 3:
                return ir.Call(dice.pick(self.rules))
            case 4:
                return ir.Repeat(self.characters(), dice.pick((0, 0, 1, 3)), dice.pick((None, 3, 5, 2000)))
            case 5:
                return ir.EMPTY if dice.number(0, 1) else ir.Bytes(((0x61, 0x62), (0xC3, 0xC3)))
            case 6:
                return self.text(0)
            case _:
                names: tuple[int | str, ...] = (0, 1, 2, 3, *SPECIAL)
                chosen = tuple(dice.pick(names) for _ in range(dice.number(1, 2)))
                return ir.Tokens(chosen, dice.number(0, 1) == 1)

    def name(self) -> str:
        return self.dice.pick(("x", "y"))

    def named(self, depth: int) -> ir.Alt:
        """A choice by captured words, as between tools."""
        words = [ir.Lit(self.dice.pick(WORDS).encode(), special=True) for _ in range(self.dice.number(2, 4))]
        ways = [ir.Seq((ir.Capture(self.name(), word), self.node(depth - 1))) for word in words]
        return ir.Alt((*ways, self.leaf()))

    def any_order(self, depth: int) -> ir.AnyOrder:
        """A few members that begin with a character each: what is empty or recursive on the left has no order."""
        dice = self.dice
        members = tuple(
            (ir.Seq((ir.lit(dice.pick(CHARACTERS)), self.node(depth - 1))), dice.number(0, 1) == 1)
            for _ in range(dice.number(0, 3))
        )
        extra = ir.Seq((ir.lit(dice.pick(CHARACTERS)), self.leaf())) if dice.number(0, 1) else None
        separator = ir.lit(dice.pick(("", ",", "a")))
        return ir.AnyOrder(members, extra, separator, ir.lit(dice.pick(("", "}", "b"))), dice.number(0, 3) == 0)

    def unlisted(self) -> ir.Unlisted:
        """Any text but a few over some letters, with another way out of them."""
        dice = self.dice
        letters = "".join(char for char in "ab<" if dice.number(0, 3)) or "a"
        words = tuple("".join(dice.pick(tuple(letters)) for _ in range(dice.number(0, 3))) for _ in range(3))
        chars = ir.chars(
            (ord(char), ord(char)) for char in (*CHARACTERS, *letters) if char in letters or char not in "ab<"
        )
        tail = ir.Seq((ir.star(self.characters()), ir.lit(dice.pick(("b", "}")))))
        other = dice.pick((ir.NOTHING, ir.Seq((ir.lit(dice.pick(("1", "\\", "a"))), self.characters(), tail))))
        return ir.Unlisted(words, chars, tail, other, ir.lit(dice.pick(("", "b", "}"))))

    def flat(self, depth: int) -> ir.Node:
        """A node without calls, captures or tokens."""
        dice = self.dice
        match dice.number(0, 4) if depth else 4:
            case 0:
                return ir.Seq((self.flat(depth - 1), self.flat(depth - 1)))
            case 1:
                return ir.Alt((self.flat(depth - 1), self.flat(depth - 1)))
            case 2:
                return ir.Repeat(self.flat(depth - 1), dice.number(0, 1), dice.pick((None, 2)))
            case 3:
                return self.characters()
            case _:
                return ir.lit(dice.pick(WORDS))

    def characters(self) -> ir.Node:
        chosen = [(ord(self.dice.pick(CHARACTERS)),) * 2 for _ in range(self.dice.number(1, 3))]
        return ir.complement(chosen) if self.dice.number(0, 2) == 0 else ir.chars(chosen)

    def words(self, low: int, high: int) -> tuple[bytes, ...]:
        return tuple({self.dice.pick(WORDS).encode(): None for _ in range(self.dice.number(low, high))})

    def text(self, depth: int) -> ir.Text:
        dice = self.dice
        names = tuple(dice.pick(("t", "u")) for _ in range(dice.number(0, 2))) if self.captures else ()
        if self.token_level and dice.number(0, 9) == 0:
            after = self.node(0) if depth else ir.EMPTY
            return ir.Text(self.words(0, 1), (), after, names, max_tokens=dice.pick((0, 1, 2, 3)))
        least = dice.pick((0, 0, 0, 1, 2, 3))
        most = dice.pick((None, None, least, least + 1, least + 2))
        stops = tuple((stop, self.node(max(depth - 1, 0)) if depth else ir.EMPTY) for stop in self.words(0, 2))
        excludes = self.words(0, 2)
        # A stop that another one always cuts short could not be the only way to end.
        cut = any(a in b[1:] for a, _ in stops for b, _ in stops)
        after = ir.EMPTY if not stops or cut or dice.number(0, 1) else None
        return ir.Text(excludes, stops, after, names, most, min_chars=least)


ESCAPED = ("n", "t", "u01", "u0é")


def make_measured(dice: Dice, factor: int = 1) -> ir.Measured:
    """A few states over characters and their escapes, with bounds of a few characters or of so many times as many."""
    count = dice.number(1, 4)
    low = dice.pick((0, 0, 1, 2, 3)) * factor
    ends = [bool(dice.number(0, 1)) for _ in range(count)]
    states = []
    for ending in ends:
        edges = [(_measured_char(dice), dice.number(0, count - 1)) for _ in range(dice.number(0, 3))]
        if low and ending and not any(ends[to] for _, to in edges):
            edges.append((_measured_char(dice), dice.pick([at for at, other in enumerate(ends) if other])))
        states.append((tuple(edges), ending))
    high = dice.pick((None, low, low + 1, low + 2, low + 5 * factor))
    return ir.Measured(tuple(states), dice.number(0, count - 1), low, high, dice.pick((b'"', b"/>", '"é'.encode())))


def _measured_char(dice: Dice) -> ir.Node:
    never = [(ord(char), ord(char)) for char in '"/\\']
    chosen = [
        (ord(dice.pick([char for char in CHARACTERS if char not in '"/'])),) * 2 for _ in range(dice.number(1, 3))
    ]
    plain = ir.complement([*chosen, *never]) if dice.number(0, 1) else ir.chars(chosen)
    if dice.number(0, 2):
        return plain
    ways = [ir.lit(dice.pick(ESCAPED)) for _ in range(dice.number(1, 2))]
    escape: ir.Node = ir.Seq((ir.lit("\\"), ir.Call(ir.Rule("escape", ir.alt(*ways)))))
    return ir.Alt((plain, escape)) if dice.number(0, 3) else escape


# Outputs.


def make_output(dice: Dice, rule: ir.Rule) -> bytes:
    """Something in the language of the grammar or near it."""
    data = b"".join(_sample(dice, rule.body, 6))[:60]
    return data if dice.number(0, 2) else mutate(dice, data)


def _sample(dice: Dice, node: ir.Node, depth: int) -> list[bytes]:
    match node:
        case ir.Lit(data):
            return [data]
        case ir.Chars(ranges) if ranges:
            low, high = dice.pick(ranges)
            known = [c for c in CHARACTERS if low <= ord(c) <= high]
            return [chr(low).encode(errors="replace") if not known else dice.pick(known).encode()]
        case ir.Bytes(ranges) if ranges:
            return [bytes(dice.pick(ranges)[:1])]
        case ir.Seq(parts):
            return [piece for part in parts for piece in _sample(dice, part, depth)]
        case ir.Unlisted():
            return _sample(dice, ir.unlisted_out(node), depth)
        case ir.AnyOrder():
            return _sample(dice, ir.unfolded(node), depth - 1) if depth > -8 else []
        case ir.Measured():
            return _sample(dice, ir.measured_on(node), depth - 1) if depth > -8 else []
        case ir.Alt(parts) if parts:
            return _sample(dice, dice.pick(parts), depth)
        case ir.Repeat(body, low, high):
            turns = min(low + dice.number(0, 2), high if high is not None else low + 2) if depth > 0 else low
            return [piece for _ in range(min(turns, 20)) for piece in _sample(dice, body, depth - 1)]
        case ir.Call(rule):
            return _sample(dice, rule.body, depth - 1) if depth > 0 else []
        case ir.Capture(_, body) | ir.Without(body):
            return _sample(dice, body, depth)
        case ir.Text(stops=stops, after=after):
            text = [dice.pick(CHARACTERS).encode() for _ in range(dice.number(0, 3))]
            if stops and (after is None or dice.number(0, 1)):
                stop, arm = dice.pick(stops)
                return [*text, stop, *_sample(dice, arm, depth - 1)]
            return [*text, *(_sample(dice, after, depth - 1) if after is not None else [])]
        case _:
            return []


def mutate(dice: Dice, data: bytes) -> bytes:
    """The same with a byte lost, a character added or replaced, a piece doubled, or its end cut off."""
    at = dice.number(0, len(data))
    to = dice.number(at, min(at + 4, len(data)))
    extra = dice.pick(CHARACTERS).encode()
    return dice.pick(
        (
            data[:at],
            data[:at] + data[to:],
            data[:at] + extra + data[at:],
            data[:at] + extra + data[to:],
            data[:to] + data[at:],
            data + extra,
        )
    )


@st.composite
def token_tables(draw: Callable[[st.SearchStrategy[Any]], Any], size: int | None = None) -> Tokens:
    return make_tokens(DrawnDice(draw), size)


@st.composite
def rules(
    draw: Callable[[st.SearchStrategy[Any]], Any], *, token_level: bool = False, captures: bool = True
) -> ir.Rule:
    return make_rule(DrawnDice(draw), token_level=token_level, captures=captures)


@st.composite
def rules_with_outputs(
    draw: Callable[[st.SearchStrategy[Any]], Any],
) -> tuple[ir.Rule, bytes]:
    rule = make_rule(DrawnDice(draw))
    return rule, make_output(DrawnDice(draw), rule)
