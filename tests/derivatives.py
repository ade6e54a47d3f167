"""What remains of a grammar's node after one more byte or token, by definition: partial derivatives.

`Grammar.steps` and `Grammar.calls` say how a node can begin; `nullable` and `productive` whether it can end now or at
all. Nothing here is fast. `oracles.py` puts these steps together into a matcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dovetail.grammar import ir
from tests.utf8 import alike, begins_char, char_length, code_points


@dataclass(frozen=True, slots=True)
class Edge:
    """One way to read on: a byte, or a whole token by its id and, where it is special, by its text.

    `token` numbers the tokens of the input, None where bytes come from no token; `offset` is the byte position before.
    """

    byte: int = -1
    whole: int | None = None
    special: bytes = b""
    token: int | None = None
    offset: int = 0


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
    tail: bytes = b""
    char: bytes = b""
    chars: int = 0
    tokens: int = 0
    token: int | None = None

    @property
    def may_end(self) -> bool:
        """Whether a stop or what follows may begin here."""
        return not self.char and self.chars >= self.text.min_chars


@dataclass(frozen=True, slots=True)
class HalfStop:
    """The first `read` bytes of a stop; `tail` is what was read up to here, to see other stops that end before.

    `closed` counts the bytes since an exclude was complete: no other stop can have begun among them.
    """

    text: ir.Text
    stop: int
    read: int
    tail: bytes
    closed: int = -1


@dataclass(frozen=True, slots=True)
class HalfWithout:
    """What remains of a body, with as much of the end of what was read as may begin an exclude."""

    body: Rest
    excludes: tuple[bytes, ...]
    tail: bytes


_KIND_STARTS = (0, 0x80, 0x90, 0xA0, 0xC0, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5, 0x100)
UTF8_KINDS = tuple(range(low, high) for low, high in pairwise(_KIND_STARTS))

Rest = ir.Node | Mark | HalfChar | HalfText | HalfStop | HalfWithout
Marks = tuple[Mark, ...]
Step = tuple[Marks, Rest]
Calling = tuple[Marks, int, Rest]


class Tokenizer:
    """Tokens by id, as a grammar sees them."""

    def __init__(
        self, tokens: Sequence[bytes], special_tokens: Mapping[str, int], stop_token_ids: Sequence[int] = ()
    ) -> None:
        names = {token: name.encode() for name, token in special_tokens.items()}
        self.special = set(names)
        self.stops = set(stop_token_ids)
        self.texts = [names.get(token, data) for token, data in enumerate(tokens)]

    def matches(self, node: ir.Tokens, token: int) -> bool:
        """Whether the node names the token; a stop token and one without bytes must be named one by one."""
        listed = any(token == (self.resolve(t) if isinstance(t, str) else t) for t in node.tokens)
        if node.exclude:
            return not listed and token not in self.stops and bool(self.texts[token])
        return listed

    def resolve(self, text: str) -> int | None:
        """The first token with that text, special ones before others."""
        found = [token for token, data in enumerate(self.texts) if data == text.encode()]
        return min(found, key=lambda token: (token not in self.special, token), default=None)


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
        self._callings: dict[Rest, list[Calling]] = {}
        self._grow(self._nullable, self.nullable)
        self._grow(self._productive, self._can_finish)

    def _grow(self, found: set[int], holds: Callable[[Rest], bool]) -> None:
        """The least set of rules for which `holds` says so of their bodies."""
        size = -1
        while size != len(found):
            size = len(found)
            found.update(key for key, rule in self.rules.items() if holds(rule.body))

    def matches_anything(self) -> bool:
        """Whether there is any output at all."""
        return id(self.root) in self._productive

    # How a node can begin.

    def steps(self, node: Rest, edge: Edge) -> Iterator[Step]:
        """Everything that may remain of `node` after `edge`; what a call matches is left to `calls`."""
        match node:
            case ir.Lit(data, special):
                if special and edge.special and data.startswith(edge.special):
                    yield (), _literal(data[len(edge.special) :])
                elif data and data[0] == edge.byte:
                    yield (), _literal(data[1:], special)
            case ir.Bytes(ranges):
                if any(low <= edge.byte <= high for low, high in ranges):
                    yield (), ir.EMPTY
            case ir.Chars(ranges):
                yield from _char_steps(HalfChar(ranges, b""), edge)
            case HalfChar():
                yield from _char_steps(node, edge)
            case ir.Seq(parts):
                for marks, part, rest in self._starts(parts):
                    for more, remains in self.steps(part, edge):
                        yield marks + more, then(remains, rest)
            case ir.Unlisted():
                yield from self.steps(ir.unlisted_out(node), edge)
            case ir.Measured():
                yield from self.steps(ir.measured_on(node), edge)
            case ir.AnyOrder():
                yield from self.steps(ir.unfolded(node), edge)
            case ir.Alt(parts):
                for part in parts:
                    yield from self.steps(part, edge)
            case ir.Repeat(body, _, high):
                if high is None or high > 0:
                    for marks, remains in self.steps(body, edge):
                        yield marks, then(remains, (self._less(node),))
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
            case HalfStop():
                yield from _stop_steps(node, edge)
            case ir.Without(body, excludes):
                yield from self._without_steps(HalfWithout(body, excludes, b""), edge)
            case HalfWithout():
                yield from self._without_steps(node, edge)

    def calls(self, node: Rest) -> list[Calling]:
        """The calls that `node` may begin with, as (marks before, id of the rule, what remains after it)."""
        if node not in self._callings:
            self._callings[node] = [
                calling
                for calling in self._find_calls(node)
                if calling[1] in self._productive and self.productive(calling[2])
            ]
        return self._callings[node]

    def _find_calls(self, node: Rest) -> Iterator[Calling]:
        match node:
            case ir.Call(rule):
                yield (), id(rule), ir.EMPTY
            case ir.Seq(parts):
                for marks, part, rest in self._starts(parts):
                    for more, callee, remains in self._find_calls(part):
                        yield marks + more, callee, then(remains, rest)
            case ir.Unlisted():
                yield from self._find_calls(ir.unlisted_out(node))
            case ir.AnyOrder():
                yield from self._find_calls(ir.unfolded(node))
            case ir.Alt(parts):
                for part in parts:
                    yield from self._find_calls(part)
            case ir.Repeat(body, _, high):
                if high is None or high > 0:
                    for marks, callee, remains in self._find_calls(body):
                        yield marks, callee, then(remains, (self._less(node),))
            case ir.Capture():
                yield from self._find_calls(self._opened(node))
            case ir.Text(after=after, min_chars=0) if after is not None:
                yield from self._find_calls(after)
            case HalfText(text=ir.Text(after=after, captures=names)) if after is not None and node.may_end:
                for more, callee, remains in self._find_calls(after):
                    yield self._named(names, False) + more, callee, remains

    def _starts(self, parts: tuple[Rest, ...]) -> Iterator[tuple[Marks, Rest, tuple[Rest, ...]]]:
        """Each part that may come first, because those before it match the empty string."""
        marks: Marks = ()
        for index, part in enumerate(parts):
            yield marks, part, parts[index + 1 :]
            if not self.nullable(part):
                return
            marks += self.empty_marks(part)

    def _less(self, node: ir.Repeat) -> ir.Repeat:
        """The repetition after one more turn; turns over a nullable body may be empty, so none is owed."""
        low = 0 if self.nullable(node.body) else max(node.low - 1, 0)
        return ir.Repeat(node.body, low, None if node.high is None else node.high - 1)

    def _text_steps(self, node: HalfText, edge: Edge) -> Iterator[Step]:
        text = node.text
        if node.may_end:
            closed = self._named(text.captures, False, edge.offset)
            if text.after is not None:
                for marks, remains in self.steps(text.after, edge):
                    yield closed + marks, remains
            for stop in range(len(text.stops)):
                for _, remains in _stop_steps(HalfStop(text, stop, 0, node.tail), edge):
                    yield closed, remains
        grown = _one_more(node, edge)
        if grown is not None:
            yield (), grown

    def _without_steps(self, node: HalfWithout, edge: Edge) -> Iterator[Step]:
        for marks, remains in self.steps(node.body, edge):
            read = node.tail + (edge.special if edge.byte < 0 else bytes((edge.byte,)))
            if not any(exclude in read for exclude in node.excludes):
                tail = read[len(read) - max((_overlap(read, word) for word in node.excludes), default=0) :]
                yield marks, HalfWithout(remains, node.excludes, tail)

    # Captures.

    def _opened(self, node: ir.Capture) -> Rest:
        if not self.marks:
            return node.body
        return then(Mark(node.name, True), (node.body, Mark(node.name, False)))

    def _named(self, names: tuple[str, ...], opens: bool, offset: int | None = None) -> Marks:
        if not self.marks:
            return ()
        return tuple(Mark(name, opens, offset) for name in (names if opens else reversed(names)))

    def empty_marks(self, node: Rest) -> Marks:
        """The marks of captures under way that end when `node` matches the empty string; empty captures leave none."""
        match node:
            case Mark():
                return (node,)
            case ir.Seq(parts):
                return tuple(mark for part in parts for mark in self.empty_marks(part))
            case HalfText(text=ir.Text(captures=names)):
                return self._named(names, False)
            case _:
                return ()

    # Whether a node can end.

    def nullable(self, node: Rest) -> bool:
        """Whether nothing more need be read."""
        match node:
            case ir.Lit(data):
                return not data
            case Mark() | ir.NewKey():
                return True
            case ir.Seq(parts):
                return all(self.nullable(part) for part in parts)
            case ir.Unlisted():
                return self.nullable(ir.unlisted_out(node))
            case ir.AnyOrder(members, _, _, close):
                return self.nullable(close) and all(self.nullable(member) for member, needed in members if needed)
            case ir.Alt(parts):
                return any(self.nullable(part) for part in parts)
            case ir.Repeat(body, low, high):
                return low == 0 or ((high is None or low <= high) and self.nullable(body))
            case ir.Call(rule):
                return id(rule) in self._nullable
            case ir.Capture(_, body) | ir.Without(body) | HalfWithout(body):
                return self.nullable(body)
            case ir.Text(after=after, min_chars=least):
                return after is not None and not least and self.nullable(after)
            case HalfText(text=ir.Text(after=after)):
                return after is not None and node.may_end and self.nullable(after)
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
            case ir.Unlisted():
                return self._can_finish(ir.unlisted_out(node))
            case ir.Measured():
                return self._can_measure(node)
            case ir.AnyOrder(members, _, _, close):
                return self._can_finish(close) and all(self._can_finish(member) for member, needed in members if needed)
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
                return known is not None and any(known.matches(node, token) for token in range(len(known.texts)))
            case ir.Text() | ir.Without() | HalfText() | HalfStop() | HalfWithout():
                return self._search(node)
            case _:
                return True

    def _can_measure(self, node: ir.Measured) -> bool:
        """Whether some number of characters leads to an end."""
        most = node.low + len(node.states)
        ending = {at for at, (_, ends) in enumerate(node.states) if ends}
        for length in range(most + 1 if node.high is None else min(most, node.high) + 1):
            if length >= node.low and node.start in ending:
                return True
            ending = {
                at
                for at, (edges, _) in enumerate(node.states)
                if any(to in ending and self._can_finish(char) for char, to in edges)
            }
        return False

    def _search(self, node: Rest) -> bool:
        """Whether some bytes lead from a text or a body with excludes to its end."""
        pending, seen = [node], {node}
        while pending:
            current = pending.pop()
            if self._ends(current):
                return True
            token = current.token if isinstance(current, HalfText) else None
            for byte in _telling_bytes(current):
                for _, rest in self.steps(current, Edge(byte, token=token)):
                    if rest not in seen:
                        # Asked at once, so that half characters are not all tried before the first whole one.
                        if self._ends(rest):
                            return True
                        seen.add(rest)
                        if isinstance(rest, ir.Text | ir.Without | HalfText | HalfStop | HalfWithout):
                            pending.append(rest)
        return False

    def _ends(self, node: Rest) -> bool:
        """Whether a text or a body with excludes may end here; what follows a text decides for it."""
        match node:
            case ir.Without() | HalfWithout():
                return self.nullable(node)
            case ir.Text():
                return self._ends(HalfText(node))
            case HalfText(text=ir.Text(after=after)):
                return after is not None and node.may_end and self._can_finish(after)
            case HalfStop():
                return False
            case _:
                return self._can_finish(node)


def then(first: Rest, rest: tuple[Rest, ...]) -> Rest:
    """`first`, then `rest`, without needless nesting."""
    parts = (first.parts if isinstance(first, ir.Seq) else (first,)) + rest
    return parts[0] if len(parts) == 1 else ir.Seq(parts)  # type: ignore[arg-type]


def at_boundary(node: Rest) -> Rest | None:
    """The node where a token has just ended; None where its text may take no other token but is inside a character."""
    match node:
        case HalfText(text=ir.Text(max_tokens=budget), tokens=tokens, char=char):
            return None if char and budget is not None and tokens >= budget else replace(node, token=None)
        case ir.Seq(parts) if parts and isinstance(parts[0], HalfText):
            first = at_boundary(parts[0])
            return None if first is None else then(first, parts[1:])
        case _:
            return node


def _literal(data: bytes, special: bool = True) -> ir.Node:
    return ir.Lit(data, special) if data else ir.EMPTY


def _char_steps(node: HalfChar, edge: Edge) -> Iterator[Step]:
    if edge.byte < 0:
        return
    read = node.read + bytes((edge.byte,))
    if not begins_char(read, node.ranges):
        return
    if len(read) == char_length(read[0]):
        yield (), ir.EMPTY
        return
    low, high = code_points(read)
    if any(begin <= low and high <= end for begin, end in node.ranges):
        yield (), HalfChar(ir.ANY_CHAR.ranges, alike(read))
    else:
        yield (), HalfChar(node.ranges, read)


def _stop_steps(node: HalfStop, edge: Edge) -> Iterator[Step]:
    """What remains of a stop and of what follows it; another stop that ends first takes its place."""
    stop, arm = node.text.stops[node.stop]
    read, tail, closed = node.read, node.tail, node.closed
    others = [other for other, _ in node.text.stops]
    data = bytes((edge.byte,)) if edge.byte >= 0 else edge.special
    if not data or not stop.startswith(data, read):
        return
    for byte in data:
        read += 1
        tail += bytes((byte,))
        if stop[:read] in others:
            # It is a stop already, or all of this one: nothing else can interfere any more.
            rest = stop[node.read + len(data) :]
            yield (), then(_literal(rest), (arm,)) if rest else arm
            return
        if closed >= 0 or any(tail.endswith(exclude) for exclude in node.text.excludes):
            closed += 1
        if any(tail.endswith(other) and len(other) > closed for other in others):
            return
    yield (), HalfStop(node.text, node.stop, read, _shortened(tail, node.text), closed)


def _one_more(node: HalfText, edge: Edge) -> HalfText | None:
    """The text with one more byte, or None where that byte cannot be part of it."""
    text = node.text
    if edge.byte < 0:
        return None
    char = node.char + bytes((edge.byte,))
    if not begins_char(char, ir.ANY_CHAR.ranges):
        return None
    chars, tokens, token = node.chars, node.tokens, node.token
    if not node.char:
        chars += 1
        if text.max_chars is None:
            chars = min(chars, text.min_chars)
        elif chars > text.max_chars:
            return None
    if text.max_tokens is not None and edge.token is not None and edge.token != token:
        token = edge.token
        tokens += 1
        if tokens > text.max_tokens:
            return None
    tail = node.tail + bytes((edge.byte,))
    if any(tail.endswith(word) for word in (*text.excludes, *(stop for stop, _ in text.stops))):
        return None
    return HalfText(text, _shortened(tail, text), alike(char), chars, tokens, token)


def _shortened(tail: bytes, text: ir.Text) -> bytes:
    """As much of the end as may begin a stop or an exclude."""
    words = (*text.excludes, *(stop for stop, _ in text.stops))
    return tail[len(tail) - max((_overlap(tail, word) for word in words), default=0) :]


def _telling_bytes(node: Rest) -> Iterable[int]:
    """Bytes enough to try: in free text, those of its words and one other of each kind that UTF-8 knows."""
    match node:
        case ir.Text() as text:
            pass
        case HalfText(text=text) | HalfStop(text=text):
            pass
        case _:
            return range(256)
    words = {byte for word in (*text.excludes, *(stop for stop, _ in text.stops)) for byte in word}
    others = (next((byte for byte in kind if byte not in words), None) for kind in UTF8_KINDS)
    return sorted(words | {byte for byte in others if byte is not None})


def _overlap(read: bytes, word: bytes) -> int:
    """The length of the longest end of `read` that begins `word` without being all of it."""
    longest = min(len(read), len(word) - 1)
    return next(size for size in range(longest, -1, -1) if word.startswith(read[len(read) - size :]))
