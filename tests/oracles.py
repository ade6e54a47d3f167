"""A slow, obvious matcher over the grammar's nodes: what the core does fast, done by definition.

Calls are handled as Earley does it, with an item (rule, what remains of its body, where it began) for every place in
the input, so that left recursion, hidden recursion and nullable rules need no care. Only non-empty matches are
completed; empty ones are skipped over by `nullable`, which keeps every completion behind its origin.

The places form a small lattice, because one token may be read in several ways: as its bytes, or by its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dovetail.grammar import ir
from tests.derivatives import Edge, Grammar, Marks, Rest, Tokenizer, at_boundary

Span = tuple[str, int, int]  # capture name, first byte, byte after the last
Item = tuple[int, Rest, int, Marks]  # id of the rule, what remains of it, its origin, the marks so far


MAX_WAYS = 60


class TooAmbiguousError(Exception):
    """The ways to read an output are too many to list."""


def accepts(grammar: ir.Node | ir.Rule, data: bytes) -> bool:
    """Whether the grammar matches all of `data`."""
    run = Run(Grammar(grammar))
    run.feed_bytes(data)
    return run.complete


def viable(grammar: ir.Node | ir.Rule, data: bytes) -> bool:
    """Whether some continuation of `data` is matched."""
    run = Run(Grammar(grammar))
    run.feed_bytes(data)
    return run.alive


def captures(grammar: ir.Node | ir.Rule, data: bytes) -> set[tuple[Span, ...]]:
    """The spans of the captures that are not empty, in the order in which they open, for each way to match `data`."""
    run = Run(Grammar(grammar, marks=True))
    run.feed_bytes(data)
    return {_spans(marks) for marks in run.results()}


def allowed_tokens(
    grammar: ir.Node | ir.Rule,
    tokens: Sequence[bytes],
    special_tokens: Mapping[str, int],
    prefix: Sequence[int] = (),
    stop_token_ids: Sequence[int] = (),
) -> set[int]:
    """The ids after which some continuation completes the grammar, found by trying every token."""
    run = Run(Grammar(grammar, Tokenizer(tokens, special_tokens, stop_token_ids)))
    for token in prefix:
        run.feed_token(token)
    return run.allowed()


class Run:
    """The item sets over an input that is fed in pieces."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.sets: list[set[Item]] = [set()]
        self.offset = 0
        self.count = 0
        self.finished = False
        if grammar.matches_anything():
            self._close(0, [(id(grammar.root), grammar.root.body, 0, ())], 0)

    def feed_bytes(self, data: bytes) -> None:
        """Read bytes that come from no token."""
        for byte in data:
            self.sets.append(set())
            self._move(len(self.sets) - 2, Edge(byte, offset=self.offset), len(self.sets) - 1)
            self.offset += 1

    def feed_token(self, token: int) -> None:
        """Read a token in every way that it may be read; a stop token ends what is complete."""
        known = self.grammar.vocabulary
        assert known is not None
        if self.finished:
            self.sets.append(set())
            return
        if token in known.stops and self.complete:
            self.finished = True
            return
        start, data = len(self.sets) - 1, known.texts[token]
        self.sets.extend(set() for _ in range(max(len(data), 1)))
        special = data if token in known.special else b""
        if not special and token not in known.stops:
            for index, byte in enumerate(data):
                edge = Edge(byte, token=self.count, offset=self.offset + index)
                self._move(start + index, edge, start + index + 1)
        self.offset += len(data)
        self._move(start, Edge(whole=token, special=special, token=self.count), len(self.sets) - 1)
        self.count += 1

    def allowed(self) -> set[int]:
        """The tokens that may come next."""
        known = self.grammar.vocabulary
        assert known is not None
        return {token for token in range(len(known.texts)) if self._allows(token)}

    def _allows(self, token: int) -> bool:
        attempt = object.__new__(Run)
        attempt.grammar, attempt.sets = self.grammar, list(self.sets)
        attempt.offset, attempt.count, attempt.finished = self.offset, self.count, self.finished
        attempt.feed_token(token)
        return attempt.alive

    @property
    def alive(self) -> bool:
        """Whether what was read can be completed, or was."""
        rests = (at_boundary(rest) for _, rest, _, _ in self.sets[-1])
        return any(rest is not None for rest in rests)

    @property
    def complete(self) -> bool:
        """Whether what was read is matched as it is."""
        return any(True for _ in self.results())

    def results(self) -> Iterator[Marks]:
        """The marks of each way to match what was read."""
        root = id(self.grammar.root)
        for rule, rest, origin, marks in self.sets[-1]:
            if rule == root and origin == 0 and self.grammar.nullable(rest):
                yield marks + _placed(self.grammar.empty_marks(rest), self.offset)

    def _move(self, source: int, edge: Edge, target: int) -> None:
        grammar = self.grammar
        moved = [
            (rule, remains, origin, marks + _placed(more, edge.offset))
            for rule, rest, origin, marks in self.sets[source]
            for more, remains in grammar.steps(rest, edge)
            if grammar.productive(remains)
        ]
        self._close(target, moved, edge.offset + 1)

    def _close(self, place: int, items: Iterable[Item], offset: int) -> None:
        grammar, found = self.grammar, self.sets[place]
        pending: list[Item] = []

        def add(item: Item) -> None:
            if item not in found:
                if grammar.marks and len(found) > MAX_WAYS:
                    raise TooAmbiguousError
                found.add(item)
                pending.append(item)

        for item in items:
            add(item)
        while pending:
            rule, rest, origin, marks = pending.pop()
            for _, callee, _ in grammar.calls(rest):
                add((callee, grammar.rules[callee].body, place, ()))
            if origin < place and grammar.nullable(rest):
                inner = marks + _placed(grammar.empty_marks(rest), offset)
                for caller, waiting, begun, before in list(self.sets[origin]):
                    for more, callee, remains in grammar.calls(waiting):
                        if callee == rule:
                            # Marks are only asked for over plain bytes, where a place is its offset.
                            add((caller, remains, begun, before + _placed(more, origin) + inner))


def _placed(marks: Marks, offset: int) -> Marks:
    return tuple(mark if mark.offset is not None else replace(mark, offset=offset) for mark in marks)


def _spans(marks: Marks) -> tuple[Span, ...]:
    spans: list[Span] = []
    opened: list[int] = []
    for mark in marks:
        assert mark.offset is not None
        if mark.opens:
            opened.append(len(spans))
            spans.append((mark.name, mark.offset, -1))
        else:
            index = opened.pop()
            spans[index] = (mark.name, spans[index][1], mark.offset)
    return tuple(span for span in spans if span[1] < span[2])
