"""A slow, obvious matcher over the grammar's nodes: what the core does fast, done by definition.

A node is consumed by partial derivatives: `steps` says which nodes may remain after one more byte. Calls are handled as
Earley does it, with an item (rule, what remains of its body, where it began) per position, so that left recursion,
hidden recursion and nullable rules need no care. Only non-empty matches are completed; empty ones are skipped over by
`nullable`, which keeps every completion behind its origin.

The input is a small lattice, because one token may be read in several ways: an ordinary token as its bytes or by its
id, a special token as bytes that only literals and stops may take, or by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.grammar import ir

Span = tuple[str, int, int]  # capture name, first byte, byte after the last


@dataclass(frozen=True, slots=True)
class Edge:
    """One way to read on: a byte of token number `token`, or a whole token where `whole` is its id."""

    byte: int = -1
    special: bool = False
    token: int = 0
    offset: int = 0
    whole: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A capture opens or closes at `offset`, or where this is read; matches the empty string."""

    name: str
    opens: bool
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class HalfChar:
    """A character of which some bytes were read."""

    ranges: tuple[tuple[int, int], ...]
    read: bytes


@dataclass(frozen=True, slots=True)
class HalfText:
    """Free text of which some was read; `tail` is as much of its end as may begin a stop or an exclude."""

    text: ir.Text
    tail: tuple[tuple[int, bool], ...] = ()
    char: bytes = b""
    chars: int = 0
    tokens: int = 0
    token: int | None = None


@dataclass(frozen=True, slots=True)
class HalfWithout:
    """What remains of a body, with as much of the end of what was read as may begin an exclude."""

    body: Rest
    excludes: tuple[bytes, ...]
    tail: bytes


Rest = ir.Node | Mark | HalfChar | HalfText | HalfWithout
Step = tuple[tuple[Mark, ...], Rest]
Item = tuple[int, Rest, int, tuple[Mark, ...]]  # id of the rule, what remains, origin, marks so far


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
    """The spans of the captures, in the order in which they open, one tuple for each way to match `data`."""
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
    vocabulary = Tokenizer(tokens, special_tokens, stop_token_ids)
    run = Run(Grammar(grammar, vocabulary))
    for token in prefix:
        run.feed_token(token)
    return run.allowed()


class Tokenizer:
    """Tokens by id, as a grammar sees them."""

    def __init__(
        self,
        tokens: Sequence[bytes],
        special_tokens: Mapping[str, int] | None = None,
        stop_token_ids: Sequence[int] = (),
    ) -> None:
        special_tokens = special_tokens or {}
        self.special = set(special_tokens.values())
        self.stops = set(stop_token_ids)
        names = {token: name.encode() for name, token in special_tokens.items()}
        self.texts = [names.get(token, data) for token, data in enumerate(tokens)]

    def matches(self, node: ir.Tokens, token: int) -> bool:
        return (token in {self._resolve(t) for t in node.tokens}) != node.exclude

    def _resolve(self, token: int | str) -> int:
        return token if isinstance(token, int) else self.texts.index(token.encode())


class Grammar:
    """The rules with what is known of them: which match the empty string and which match anything at all."""

    def __init__(self, grammar: ir.Node | ir.Rule, vocabulary: Tokenizer | None = None, *, marks: bool = False) -> None:
        self.root = grammar if isinstance(grammar, ir.Rule) else ir.Rule("root", grammar)
        self.vocabulary = vocabulary
        self.marks = marks
        self.rules = {id(rule): rule for rule in ir.reachable(self.root)}
        self._nullable: set[int] = set()
        self._productive: set[int] = set()
        self._known: dict[Rest, bool] = {}
        self._calls: dict[Rest, list[tuple[tuple[Mark, ...], int, Rest]]] = {}
        self._grow(self._nullable, self.nullable)
        self._grow(self._productive, self._can_finish)

    def _grow(self, found: set[int], holds: Callable[[Rest], bool]) -> None:
        """The least set of rules for which `holds` says so of their bodies."""
        size = -1
        while size != len(found):
            size = len(found)
            found.update(key for key, rule in self.rules.items() if holds(rule.body))

    # What may be read next.

    def steps(self, node: Rest, edge: Edge) -> Iterator[Step]:
        """Everything that may remain of `node` after `edge`; what a call matches is left to `calls`."""
        match node:
            case ir.Lit(data, special):
                if data and data[0] == edge.byte and (special or not edge.special):
                    yield (), ir.Lit(data[1:], special) if len(data) > 1 else ir.EMPTY
            case ir.Bytes(ranges):
                if not edge.special and any(low <= edge.byte <= high for low, high in ranges):
                    yield (), ir.EMPTY
            case ir.Chars(ranges):
                yield from self._char_steps(HalfChar(ranges, b""), edge)
            case HalfChar():
                yield from self._char_steps(node, edge)
            case ir.Seq(parts):
                for marks, part, rest in self._starts(parts):
                    for more, remains in self.steps(part, edge):
                        yield marks + more, _then(remains, rest)
            case ir.Alt(parts):
                for part in parts:
                    yield from self.steps(part, edge)
            case ir.Repeat(body, _, high):
                if high is None or high > 0:
                    for marks, remains in self.steps(body, edge):
                        yield marks, _then(remains, (self._less(node),))
            case ir.Capture():
                yield from self.steps(self._opened(node), edge)
            case ir.Tokens():
                if edge.whole is not None and self.vocabulary and self.vocabulary.matches(node, edge.whole):
                    yield (), ir.EMPTY
            case ir.Text(captures=names):
                for marks, remains in self._text_steps(HalfText(node), edge):
                    yield self._named(names, True, edge.offset) + marks, remains
            case HalfText():
                yield from self._text_steps(node, edge)
            case ir.Without(body, excludes):
                yield from self._without_steps(HalfWithout(body, excludes, b""), edge)
            case HalfWithout():
                yield from self._without_steps(node, edge)

    def calls(self, node: Rest) -> list[tuple[tuple[Mark, ...], int, Rest]]:
        """The calls that `node` may begin with, as (marks before, id of the rule, what remains after it)."""
        if node not in self._calls:
            self._calls[node] = [
                (marks, rule, rest)
                for marks, rule, rest in self._find_calls(node)
                if rule in self._productive and self.productive(rest)
            ]
        return self._calls[node]

    def _find_calls(self, node: Rest) -> Iterator[tuple[tuple[Mark, ...], int, Rest]]:
        match node:
            case ir.Call(rule):
                yield (), id(rule), ir.EMPTY
            case ir.Seq(parts):
                for marks, part, rest in self._starts(parts):
                    for more, rule, remains in self._find_calls(part):
                        yield marks + more, rule, _then(remains, rest)
            case ir.Alt(parts):
                for part in parts:
                    yield from self._find_calls(part)
            case ir.Repeat(body, _, high):
                if high is None or high > 0:
                    for marks, rule, remains in self._find_calls(body):
                        yield marks, rule, _then(remains, (self._less(node),))
            case ir.Capture():
                yield from self._find_calls(self._opened(node))
            case ir.Text(after=after, captures=names):
                if after is not None:
                    marks = self._named(names, True) + self._named(names, False)
                    for more, rule, remains in self._find_calls(after):
                        yield marks + more, rule, remains
            case HalfText(text=ir.Text(after=after, captures=names)):
                if after is not None and _may_end(node):
                    for more, rule, remains in self._find_calls(after):
                        yield self._named(names, False) + more, rule, remains

    def _starts(self, parts: tuple[ir.Node, ...]) -> Iterator[tuple[tuple[Mark, ...], Rest, tuple[ir.Node, ...]]]:
        """Each part that may come first, because those before it match the empty string."""
        marks: tuple[Mark, ...] = ()
        for index, part in enumerate(parts):
            yield marks, part, parts[index + 1 :]
            if not self.nullable(part):
                return
            marks += self.empty_marks(part)

    def _less(self, node: ir.Repeat) -> ir.Repeat:
        """The repetition after one more turn; turns over a nullable body may be empty, so none is owed."""
        low = 0 if self.nullable(node.body) else max(node.low - 1, 0)
        return ir.Repeat(node.body, low, None if node.high is None else node.high - 1)

    # Leaves.

    def _char_steps(self, node: HalfChar, edge: Edge) -> Iterator[Step]:
        if edge.byte < 0 or edge.special:
            return
        read = node.read + bytes((edge.byte,))
        if _begins_char(read, node.ranges):
            yield (), ir.EMPTY if len(read) == _char_length(read[0]) else HalfChar(node.ranges, read)

    def _text_steps(self, node: HalfText, edge: Edge) -> Iterator[Step]:
        text = node.text
        if text.after is not None and _may_end(node):
            for marks, remains in self.steps(text.after, edge):
                yield self._named(text.captures, False, edge.offset) + marks, remains
        grown = _one_more(node, edge)
        if grown is None:
            return
        ended = False
        for stop, arm in text.stops:
            if _ends_with(grown.tail, stop):
                ended = True
                start = edge.offset + 1 - len(stop)
                marks = self._named(text.captures, False, start)
                yield marks, arm
                for longer, other in text.stops:
                    if longer.startswith(stop) and longer != stop:
                        yield marks, ir.Seq((ir.Lit(longer[len(stop) :], special=True), other))
        if not ended:
            trimmed = _trimmed(grown)
            if trimmed is not None:
                yield (), trimmed

    def _without_steps(self, node: HalfWithout, edge: Edge) -> Iterator[Step]:
        if edge.byte < 0:
            return
        read = node.tail + bytes((edge.byte,))
        if any(read.endswith(exclude) for exclude in node.excludes):
            return
        longest = max(map(len, node.excludes), default=1)
        for marks, remains in self.steps(node.body, edge):
            yield marks, HalfWithout(remains, node.excludes, read[len(read) - longest + 1 :] if longest > 1 else b"")

    # Captures.

    def _opened(self, node: ir.Capture) -> Rest:
        if not self.marks:
            return node.body
        return ir.Seq((Mark(node.name, True), node.body, Mark(node.name, False)))  # type: ignore[arg-type]

    def _named(self, names: tuple[str, ...], opens: bool, offset: int | None = None) -> tuple[Mark, ...]:
        if not self.marks:
            return ()
        return tuple(Mark(name, opens, offset) for name in (names if opens else reversed(names)))

    def empty_marks(self, node: Rest) -> tuple[Mark, ...]:
        """The marks that `node` leaves when it matches the empty string."""
        if not self.marks:
            return ()
        match node:
            case Mark():
                return (node,)
            case ir.Seq(parts):
                return tuple(mark for part in parts for mark in self.empty_marks(part))
            case ir.Alt(parts):
                return next(self.empty_marks(part) for part in parts if self.nullable(part))
            case ir.Repeat(body, low, _):
                return self.empty_marks(body) * low
            case ir.Capture():
                return self.empty_marks(self._opened(node))
            case ir.Call(rule):
                return self.empty_marks(rule.body)
            case ir.Text(after=after, captures=names) if after is not None:
                return self._named(names, True) + self._named(names, False) + self.empty_marks(after)
            case HalfText(text=ir.Text(after=after, captures=names)) if after is not None:
                return self._named(names, False) + self.empty_marks(after)
            case _:
                return ()

    # What can be empty, what can be finished.

    def nullable(self, node: Rest) -> bool:
        """Whether nothing more need be read."""
        match node:
            case ir.Lit(data):
                return not data
            case Mark():
                return True
            case ir.Seq(parts):
                return all(self.nullable(part) for part in parts)
            case ir.Alt(parts):
                return any(self.nullable(part) for part in parts)
            case ir.Repeat(body, low, _):
                return low == 0 or self.nullable(body)
            case ir.Call(rule):
                return id(rule) in self._nullable
            case ir.Capture(_, body) | ir.Without(body) | HalfWithout(body):
                return self.nullable(body)
            case ir.Text(after=after):
                return after is not None and self.nullable(after)
            case HalfText(text=ir.Text(after=after)):
                return after is not None and _may_end(node) and self.nullable(after)
            case _:
                return False

    def productive(self, node: Rest) -> bool:
        """Whether something can still be read that finishes `node`."""
        if node not in self._known:
            self._known[node] = self._can_finish(node)
        return self._known[node]

    def _can_finish(self, node: Rest) -> bool:
        match node:
            case ir.Seq(parts):
                return all(self._can_finish(part) for part in parts)
            case ir.Alt(parts):
                return any(self._can_finish(part) for part in parts)
            case ir.Repeat(body, low, high):
                return (high is None or low <= high) and (low == 0 or self._can_finish(body))
            case ir.Call(rule):
                return id(rule) in self._productive
            case ir.Capture(_, body):
                return self._can_finish(body)
            case ir.Chars(ranges):
                return any(low < 0xD800 or high > 0xDFFF for low, high in ranges)
            case ir.Bytes(ranges):
                return bool(ranges)
            case ir.Tokens():
                known = self.vocabulary
                return known is not None and any(
                    known.matches(node, token) for token in range(len(known.texts)) if token not in known.stops
                )
            case ir.Text() | ir.Without() | HalfText() | HalfWithout():
                return self._search(node)
            case _:
                return True

    def _search(self, node: Rest) -> bool:
        """Whether some bytes lead from a text or a body with excludes to its end."""
        pending, seen = [node], {node}
        while pending:
            current = pending.pop()
            if not isinstance(current, ir.Text | ir.Without | HalfText | HalfWithout):
                # The text has ended; what follows it decides.
                if self._can_finish(current):
                    return True
                continue
            if isinstance(current, ir.Without | HalfWithout):
                if self.nullable(current):
                    return True
            else:
                text = current if isinstance(current, ir.Text) else current.text
                ended = isinstance(current, ir.Text) or _may_end(current)
                if ended and text.after is not None and self._can_finish(text.after):
                    return True
            for byte in range(256):
                token = current.token if isinstance(current, HalfText) else None
                for _, rest in self.steps(current, Edge(byte, token=-1 if token is None else token)):
                    if rest not in seen:
                        seen.add(rest)
                        pending.append(rest)
        return False


class Run:
    """The item sets over an input that is fed in pieces."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.sets: list[set[Item]] = [set()]
        self.offset = 0
        self.count = 0
        self.stopped = False
        root = id(grammar.root)
        if root in grammar._productive:
            self._close(0, [(root, grammar.root.body, 0, ())])

    def feed_bytes(self, data: bytes) -> None:
        """Read bytes that come from no token."""
        for byte in data:
            source = len(self.sets) - 1
            self.sets.append(set())
            self._move(source, Edge(byte, token=self.count, offset=self.offset), len(self.sets) - 1)
            self.offset += 1
        self.count += 1

    def feed_token(self, token: int) -> None:
        """Read a token in every way that it may be read."""
        known = self.grammar.vocabulary
        assert known is not None
        if token in known.stops:
            if not self.complete:
                self.sets.append(set())
            self.stopped = True
            return
        start, data = len(self.sets) - 1, known.texts[token]
        self.sets.extend(set() for _ in range(max(len(data), 1)))
        end = len(self.sets) - 1
        for index, byte in enumerate(data):
            edge = Edge(byte, token in known.special, self.count, self.offset + index)
            self._move(start + index, edge, start + index + 1)
        self._move(start, Edge(whole=token, token=self.count, offset=self.offset), end)
        self.offset += len(data)
        self.count += 1

    def allowed(self) -> set[int]:
        """The tokens that may come next."""
        known = self.grammar.vocabulary
        assert known is not None
        if self.stopped:
            return set()
        found = set()
        for token in range(len(known.texts)):
            if token in known.stops:
                if self.complete:
                    found.add(token)
                continue
            attempt = self.fork()
            attempt.feed_token(token)
            if attempt.alive:
                found.add(token)
        return found

    def fork(self) -> Run:
        """A run that goes on from here on its own."""
        copy = object.__new__(Run)
        copy.grammar, copy.sets = self.grammar, list(self.sets)
        copy.offset, copy.count, copy.stopped = self.offset, self.count, self.stopped
        return copy

    @property
    def alive(self) -> bool:
        """Whether what was read can be completed by tokens yet to come."""
        grammar = self.grammar
        return any(grammar.productive(_at_boundary(rest)) for _, rest, _, _ in self.sets[-1])

    @property
    def complete(self) -> bool:
        """Whether what was read is matched as it is."""
        root = id(self.grammar.root)
        return any(
            rule == root and origin == 0 and self.grammar.nullable(rest) for rule, rest, origin, _ in self.sets[-1]
        )

    def results(self) -> Iterator[tuple[Mark, ...]]:
        """The marks of each way to match what was read."""
        root = id(self.grammar.root)
        for rule, rest, origin, marks in self.sets[-1]:
            if rule == root and origin == 0 and self.grammar.nullable(rest):
                yield marks + _placed(self.grammar.empty_marks(rest), self.offset)

    def _move(self, source: int, edge: Edge, target: int) -> None:
        grammar = self.grammar
        moved: list[Item] = []
        for rule, rest, origin, marks in self.sets[source]:
            for more, remains in grammar.steps(rest, edge):
                if grammar.productive(remains):
                    moved.append((rule, remains, origin, marks + _placed(more, edge.offset)))
        after = edge.offset + 1 if edge.whole is None else self.offset
        self._close(target, moved, after)

    def _close(self, place: int, items: Iterable[Item], offset: int = 0) -> None:
        grammar, found = self.grammar, self.sets[place]
        pending = [item for item in items if item not in found]
        found.update(pending)

        def add(item: Item) -> None:
            if item not in found:
                found.add(item)
                pending.append(item)

        while pending:
            rule, rest, origin, marks = pending.pop()
            for _, callee, _ in grammar.calls(rest):
                add((callee, grammar.rules[callee].body, place, ()))
            if origin < place and grammar.nullable(rest):
                inner = marks + _placed(grammar.empty_marks(rest), offset)
                for caller, waiting, begun, before in self.sets[origin]:
                    for more, callee, remains in grammar.calls(waiting):
                        if callee == rule:
                            # Marks are only asked for over plain bytes, where a place is its offset.
                            add((caller, remains, begun, before + _placed(more, origin) + inner))


def _then(first: Rest, rest: tuple[ir.Node, ...]) -> Rest:
    """`first`, then `rest`, without needless nesting."""
    if not rest:
        return first
    head = first.parts if isinstance(first, ir.Seq) else (first,)
    parts = head + rest
    return parts[0] if len(parts) == 1 else ir.Seq(parts)  # type: ignore[arg-type]


def _one_more(node: HalfText, edge: Edge) -> HalfText | None:
    """The text with one more byte, or None where that byte cannot be part of it."""
    text = node.text
    if edge.byte < 0:
        return None
    char = node.char + bytes((edge.byte,))
    if not _begins_char(char, ir.ANY_CHAR.ranges):
        return None
    chars, tokens, token = node.chars, node.tokens, node.token
    if text.max_chars is not None and not node.char:
        chars += 1
        if chars > text.max_chars:
            return None
    if text.max_tokens is not None and edge.token != token:
        token = edge.token
        tokens += 1
        if tokens > text.max_tokens:
            return None
    tail = (*node.tail, (edge.byte, edge.special))
    if any(_ends_with(tail, exclude, special=True) for exclude in text.excludes):
        return None
    if len(char) == _char_length(char[0]):
        char = b""
    return HalfText(text, tail, char, chars, tokens, token)


def _trimmed(node: HalfText) -> HalfText | None:
    """The same text with the shortest tail that tells all; None where a special token ended up in the text."""
    tail = node.tail
    read = bytes(byte for byte, _ in tail)
    open_stop = max((_overlap(read, stop) for stop, _ in node.text.stops), default=0)
    if any(special for _, special in tail[: len(tail) - open_stop]):
        return None
    keep = max([open_stop, *(_overlap(read, exclude) for exclude in node.text.excludes)])
    return replace(node, tail=tail[len(tail) - keep :])


def _may_end(node: HalfText) -> bool:
    """Whether the text may end here without a stop."""
    return not node.char and not any(special for _, special in node.tail)


def _ends_with(tail: tuple[tuple[int, bool], ...], word: bytes, *, special: bool = False) -> bool:
    """Whether the tail ends with `word`, with special bytes before it only where `special`."""
    read = bytes(byte for byte, _ in tail)
    return read.endswith(word) and (special or not any(flag for _, flag in tail[: len(tail) - len(word)]))


def _overlap(read: bytes, word: bytes) -> int:
    """The length of the longest end of `read` that begins `word` without being all of it."""
    return next(
        size for size in range(min(len(read), len(word) - 1), -1, -1) if word.startswith(read[len(read) - size :])
    )


def _char_length(first: int) -> int:
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _begins_char(read: bytes, ranges: tuple[tuple[int, int], ...]) -> bool:
    """Whether `read` is, or begins, the UTF-8 form of a character in `ranges`."""
    first = read[0]
    if 0x80 <= first < 0xC2 or first > 0xF4 or not all(0x80 <= byte <= 0xBF for byte in read[1:]):
        return False
    length = _char_length(first)
    low = high = first if length == 1 else first & (0x7F >> length)
    for index in range(1, length):
        low = low << 6 | (read[index] & 0x3F if index < len(read) else 0)
        high = high << 6 | (read[index] & 0x3F if index < len(read) else 0x3F)
    low = max(low, (0, 0, 0x80, 0x800, 0x10000)[length])
    high = min(high, ir.MAX_CODE_POINT)
    for begin, end in ranges:
        for a, b in ((0, 0xD7FF), (0xE000, ir.MAX_CODE_POINT)):
            if max(low, begin, a) <= min(high, end, b):
                return True
    return False


def _at_boundary(node: Rest) -> Rest:
    """The node where a token has just ended, so that whatever text follows belongs to a new one."""
    match node:
        case HalfText():
            return replace(node, token=None)
        case ir.Seq(parts) if parts and isinstance(parts[0], HalfText):
            return ir.Seq((_at_boundary(parts[0]), *parts[1:]))  # type: ignore[arg-type]
        case _:
            return node


def _placed(marks: tuple[Mark, ...], offset: int) -> tuple[Mark, ...]:
    return tuple(mark if mark.offset is not None else replace(mark, offset=offset) for mark in marks)


def _spans(marks: tuple[Mark, ...]) -> tuple[Span, ...]:
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
    return tuple(spans)
