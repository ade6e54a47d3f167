"""What is left of a pattern after some characters, by partial derivatives (Antimirov 1996).

A term is a pattern and the term that follows it. Terms are made when they are first reached, so that large counts cost
nothing until they are walked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.lengths import Span, span, sum_of
from dovetail.grammar.regex.syntax import Cat, Or, Rep, Syntax, Words, children

MAX_TERMS = 100_000

END = 0

Ranges = tuple[tuple[int, int], ...]
Moves = tuple[tuple[int, int], ...]  # a mask of symbols and the term behind them


class Terms:
    """The terms of several patterns without assertions, over one alphabet of classes of like characters."""

    def __init__(self, patterns: Iterable[Syntax], read: Callable[[ir.Node], Syntax]) -> None:
        patterns = list(patterns)
        self._read = read
        self._bodies: dict[int, Syntax] = {}
        self.alphabet, self._masks = partition(self._classes(patterns))
        self.every = (1 << len(self.alphabet)) - 1
        self._parts: list[tuple[Syntax, int]] = [(Cat(()), END)]
        self._numbers: dict[tuple[int, int], int] = {}
        self._listed: dict[tuple[str, ...], Words] = {}
        self._counted: dict[tuple[int, int, int | None], Rep] = {}
        self._moves: dict[int, tuple[Moves, bool]] = {END: ((), True)}
        self._spans: dict[int, Span] = {END: (0, 0)}
        self._rests: dict[int, Syntax] = {END: Cat(())}
        self._open: set[int] = set()
        self._kept: list[Syntax] = patterns  # terms are known by the identity of their patterns

    def _classes(self, patterns: list[Syntax]) -> Iterator[Ranges]:
        pending = list(patterns)
        while pending:
            node = pending.pop()
            if isinstance(node, ir.Chars):
                yield node.ranges
            elif isinstance(node, Words):
                yield from (((ord(char), ord(char)),) for char in set("".join(node.words)))
            elif isinstance(node, ir.Call):
                if id(node.rule) not in self._bodies:
                    self._bodies[id(node.rule)] = self._read(node.rule.body)
                    pending.append(self._bodies[id(node.rule)])
            else:
                pending.extend(children(node))

    def term(self, node: Syntax, rest: int = END) -> int:
        """`node` and then `rest`."""
        key = (id(node.rule if type(node) is ir.Call else node), rest)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._parts)
            if number > MAX_TERMS:
                raise LimitError("the pattern takes too long to combine", "", "use smaller repetitions")
            self._parts.append((node, rest))
        return number

    def moves(self, term: int) -> Moves:
        """Where each character leads."""
        return self._known(term)[0]

    def is_nullable(self, term: int) -> bool:
        """Whether the text may end here."""
        return self._known(term)[1]

    def is_universal(self, term: int) -> bool:
        """Whether any text may follow; False also where that is not obvious."""
        moves, nullable = self._known(term)
        return nullable and (self.every, term) in moves

    def span(self, term: int) -> Span:
        """The fewest and most characters that may follow."""
        chain: list[int] = []
        at = term
        while at not in self._spans:
            chain.append(at)
            at = self._parts[at][1]
        for at in reversed(chain):
            node, rest = self._parts[at]
            self._spans[at] = sum_of([span(node), self._spans[rest]])
        return self._spans[term]

    def rest(self, term: int) -> Syntax:
        """The pattern of what may follow."""
        known = self._rests.get(term)
        if known is None:
            parts: list[Syntax] = []
            at = term
            while at != END:
                node, at = self._parts[at]
                parts.extend(node.parts if isinstance(node, Cat) else (node,))
            known = self._rests[term] = parts[0] if len(parts) == 1 else Cat(tuple(parts))
        return known

    def _known(self, term: int) -> tuple[Moves, bool]:
        known = self._moves.get(term)
        if known is None:
            known = self._moves[term] = self._linear(term)
        return known

    def _linear(self, term: int) -> tuple[Moves, bool]:
        masks: dict[int, int] = {}
        nullable = False
        seen = {term}
        pending = [term]
        while pending:
            current = pending.pop()
            if current == END:
                nullable = True
                continue
            node, rest = self._parts[current]
            if type(node) is ir.Chars:
                masks[rest] = masks.get(rest, 0) | self._masks[node.ranges]
                continue
            if type(node) is Rep and type(node.body) is ir.Chars:
                reached: Sequence[int] = self._repeated(node, node.body, rest, masks)
            else:
                reached = self._unfolded(node, rest, masks, seen)
            for found in reached:
                if found not in seen:
                    seen.add(found)
                    pending.append(found)
        return tuple([(mask, target) for target, mask in masks.items()]), nullable

    def _repeated(self, node: Rep, body: ir.Chars, rest: int, masks: dict[int, int]) -> Sequence[int]:
        """What `_unfolded` gives for a class that is repeated, with the character itself."""
        low, high = node.low, node.high
        if high != 0:
            left = node if high is None and not low else self._count(body, low, high)
            again = rest if high == 1 else self.term(left, rest)
            masks[again] = masks.get(again, 0) | self._masks[body.ranges]
        return () if low else (rest,)

    def _unfolded(self, node: Syntax, rest: int, masks: dict[int, int], seen: set[int]) -> Sequence[int]:
        """The terms that stand for `node` and `rest` before the next character, which goes to `masks`."""
        match node:
            case Cat(parts):
                for part in reversed(parts):
                    rest = self.term(part, rest)
                return (rest,)
            case Or(parts):
                return [self.term(part, rest) for part in parts]
            case Rep(body, low, high):
                empty = self._matches_empty(body)
                found = [rest] if low == 0 or empty else []
                if high != 0:
                    # Nothing is put behind the last time, so that a call at its end stays one.
                    left = node if high is None and not low else self._count(body, 0 if empty else low, high)
                    again = rest if high == 1 else self.term(left, rest)
                    if empty and high != 1:
                        seen.add(again)  # without a character it adds nothing
                    found.append(self.term(body, again))
                return found
            case ir.Call(rule):
                return (self.term(self._bodies[id(rule)], rest),)
            case Words(words):
                tails: dict[str, list[str]] = {}
                for word in words:
                    tails.setdefault(word[:1], []).append(word[1:])
                ended = tails.pop("", None)
                for char, ends in tails.items():
                    target = self.term(self._tails(ends), rest)
                    masks[target] = masks.get(target, 0) | self._masks[((ord(char), ord(char)),)]
                return (rest,) if ended else ()
            case _:
                raise AssertionError("assertions are resolved first")

    def _tails(self, words: list[str]) -> Words:
        key = tuple(words)
        found = self._listed.get(key)
        if found is None:
            found = self._listed[key] = Words(key)
        return found

    def words(self, threads: Iterable[int]) -> tuple[str, ...] | None:
        """The texts that may follow where they are words; None otherwise."""
        nodes = [self._parts[term] for term in threads]
        if len(nodes) == 1 and isinstance(nodes[0][0], Words) and nodes[0][1] == END:
            return nodes[0][0].words
        return None

    def _count(self, body: Syntax, low: int, high: int | None) -> Rep:
        """What is left of a repetition after one time."""
        key = (id(body), max(low - 1, 0), None if high is None else high - 1)
        left = self._counted.get(key)
        if left is None:
            left = self._counted[key] = Rep(body, key[1], key[2])
        return left

    def _matches_empty(self, node: Syntax) -> bool:
        if isinstance(node, ir.Chars) or id(node) in self._open:
            return False
        self._open.add(id(node))
        nullable = self.is_nullable(self.term(node))
        self._open.discard(id(node))
        return nullable


def partition(classes: Iterable[Ranges]) -> tuple[list[Ranges], dict[Ranges, int]]:
    """The coarsest classes of characters that the given ones can be built from, and each given one as a bit mask."""
    distinct = list(dict.fromkeys(classes))
    # Surrogates are no characters: bit 0 marks what is one.
    toggles: dict[int, int] = {0: 1, 0xD800: 1, 0xE000: 1, ir.MAX_CODE_POINT + 1: 1}
    for bit, ranges in enumerate(distinct, start=1):
        for low, high in ranges:
            toggles[low] = toggles.get(low, 0) ^ 1 << bit
            toggles[high + 1] = toggles.get(high + 1, 0) ^ 1 << bit
    found: dict[int, list[tuple[int, int]]] = {}
    signature, start = 0, 0
    for code in sorted(toggles):
        if signature & 1 and code > start:
            found.setdefault(signature, []).append((start, code - 1))
        signature ^= toggles[code]
        start = code
    masks = {
        ranges: sum(1 << symbol for symbol, signature in enumerate(found) if signature >> bit & 1)
        for bit, ranges in enumerate(distinct, start=1)
    }
    return [tuple(spans) for spans in found.values()], masks
