"""The grammar: rules over bytes and tokens, independent of any vocabulary.

Everything above (formats, JSON Schema, EBNF, regexes) lowers to these nodes, and everything below (the core, the
exports, the slow oracle of the tests) reads them. A node is a value; a `Rule` is the only thing with identity, so that
rules can call each other. The core interns rules by content, so equal rules of different grammars share their work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

MAX_CODE_POINT = 0x10FFFF

_T = TypeVar("_T")
_Trie = dict[str, "_Trie"]
_END = ""


@dataclass_transform(frozen_default=True)
def _node(cls: type[_T]) -> type[_T]:
    """A value with slots: type checkers hold it frozen, but making one costs a third of a frozen dataclass."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@_node
class Lit:
    """Exactly these bytes; where `special`, a special token may stand for its text inside them."""

    data: bytes
    special: bool = False


@_node
class Chars:
    """One character out of sorted, disjoint, inclusive code point ranges, as well-formed UTF-8."""

    ranges: tuple[tuple[int, int], ...]


@_node
class Bytes:
    """One byte out of sorted, disjoint, inclusive ranges; for grammars that are about bytes, not text."""

    ranges: tuple[tuple[int, int], ...]


@_node
class Seq:
    """The parts in order; no parts match the empty string."""

    parts: tuple[Node, ...]


@_node
class Alt:
    """Any one of the parts; no parts match nothing."""

    parts: tuple[Node, ...]


@_node
class Repeat:
    """`body` from `low` to `high` times; `high` None is unbounded. Large bounds cost nothing: the core counts."""

    body: Node
    low: int
    high: int | None


@dataclass(slots=True, eq=False)
class Rule:
    """A named body that may call other rules, itself included; `body` is set once, before the rule is compiled."""

    name: str
    body: Node
    compiled: object = field(default=None, init=False, repr=False)  # the core's own: what the rule has become there


@_node
class Call:
    """What `rule` matches; the boundary at which the core shares and caches work."""

    rule: Rule


@_node
class Capture:
    """What `body` matches, reported as events under `name`."""

    name: str
    body: Node


@_node
class Tokens:
    """One whole token by id, or any but these where `exclude`; a string is the token with that text."""

    tokens: tuple[int | str, ...]
    exclude: bool = False


@_node
class Text:
    """Free well-formed UTF-8 text that contains none of `excludes` and none of the stops.

    It ends at the first stop, which is consumed and followed by the node beside it; where one stop is a prefix of
    another, both may end it. The stop is not part of the text: an excluded string may lie in it or reach into it.
    Unless `after` is None it may also end anywhere, and `after` follows. A special token may stand for its text inside
    a stop, never in the text. `captures` names the text without its stop, outermost first.
    `min_chars` and `max_chars` count the code points before the stop; with a lower bound no stop may begin inside
    another, and a character of ASCII must be free of stops and excludes. `max_tokens` counts tokens that touch the
    text; it goes with neither stops nor a lower bound.
    """

    excludes: tuple[bytes, ...] = ()
    stops: tuple[tuple[bytes, Node], ...] = ()
    after: Node | None = Seq(())
    captures: tuple[str, ...] = ()
    max_chars: int | None = None
    max_tokens: int | None = None
    min_chars: int = 0


@_node
class AnyOrder:
    """Each of `members` at most once in any order, those that are required exactly once, then `close`.

    `extra` comes any number of times between them, and `separator` before all but the first; where `started`, before
    the first too. At most 4096 members: the core keeps a set of those that were there.
    """

    members: tuple[tuple[Node, bool], ...]
    extra: Node | None
    separator: Node
    close: Node
    started: bool = False


@_node
class Unlisted:
    """A text of `chars` that is none of `words`, which consist of `chars` too, and what follows it.

    Behind a character that leaves all words stands `rest`: the rest of the text, and what follows. `other` is another
    way to leave them, with all that comes behind, such as an escape. Where the text ends inside the words, `end`
    follows.
    """

    words: tuple[str, ...]
    chars: Chars
    rest: Node
    other: Node
    end: Node


@_node
class Measured:
    """A text of `low` to `high` characters along the edges of an automaton, and `end` behind it.

    A state is its edges, each a character as it is written and a state, and whether the text may end there. The first
    byte of what is written tells whether it is the character itself or an escape, and is not that of `end`.
    Where `low` is more than 0, a state where the text may end has an edge to another such state: the core keeps the
    number of characters beside the state, and whatever it is, it must be possible to go on.
    """

    states: tuple[tuple[tuple[tuple[Node, int], ...], bool], ...]
    start: int
    low: int
    high: int | None
    end: bytes


@_node
class Without:
    """What `body` matches, unless its bytes contain one of `excludes`; the body holds no calls, captures or tokens."""

    body: Node
    excludes: tuple[bytes, ...]


@_node
class NewKey:
    """Nothing, behind the closing quote of a key in a JSON object that did not have this key yet.

    No automaton holds that: a matcher remembers the keys of the objects that are open. Keys grow where every beginning
    of one is the beginning of infinitely many; of others the matcher sees to it that one is left before it begins.
    """

    grows: bool = True


Node = (
    Lit
    | Chars
    | Bytes
    | Seq
    | Alt
    | Repeat
    | Call
    | Capture
    | Tokens
    | Text
    | AnyOrder
    | Unlisted
    | Measured
    | Without
    | NewKey
)

Parts = tuple[Node, ...]  # nodes in a row

EMPTY = Seq(())
NOTHING = Alt(())


def is_nothing(node: Node) -> bool:
    """Whether the node is a choice without parts; cheaper than a comparison, and asked often."""
    return type(node) is Alt and not node.parts


ANY_CHAR = Chars(((0, MAX_CODE_POINT),))


def seq(*parts: Node) -> Node:
    """A sequence without needless nesting."""
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Seq):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def alt(*parts: Node) -> Node:
    """A choice; one part stands for itself."""
    return parts[0] if len(parts) == 1 else Alt(parts)


def optional(body: Node) -> Node:
    """`body` or nothing."""
    return Repeat(body, 0, 1)


def star(body: Node) -> Node:
    """`body` any number of times."""
    return Repeat(body, 0, None)


def lit(text: str) -> Lit:
    """The UTF-8 bytes of `text`."""
    return Lit(text.encode())


def unfolded(node: AnyOrder) -> Alt:
    """What comes next in any order, and then the rest of it."""
    ways: list[Node] = [] if any(required for _, required in node.members) else [node.close]
    lead = (node.separator,) if node.started else ()
    for index, (member, _) in enumerate(node.members):
        others = (*node.members[:index], *node.members[index + 1 :])
        ways.append(Seq((*lead, member, AnyOrder(others, node.extra, node.separator, node.close, True))))
    if node.extra is not None:
        again = AnyOrder(node.members, node.extra, node.separator, node.close, True)
        ways.append(Seq((*lead, node.extra, again)))
    return Alt(tuple(ways))


def fold_words(words: Iterable[str], fold: Callable[[dict[str, Node], bool, bool], Node]) -> Node:
    """`fold` over the trie of some words: what it gave for each next letter, if a word ends, if at the root."""
    root: _Trie = {}
    for word in words:
        place = root
        for char in word:
            place = place.setdefault(char, {})
        place[_END] = {}
    done: dict[int, Node] = {}
    pending: list[tuple[_Trie, bool]] = [(root, False)]
    # Children first, without recursion: a word may be long.
    while pending:
        place, ready = pending.pop()
        forks = [char for char in place if char]
        if ready:
            done[id(place)] = fold({char: done[id(place[char])] for char in forks}, _END in place, place is root)
        else:
            pending.append((place, True))
            pending.extend((place[char], False) for char in forks)
    return done[id(root)]


def unlisted_out(node: Unlisted) -> Node:
    """The choice that an unlisted text stands for."""
    never = complement(node.chars.ranges).ranges

    def fold(forks: dict[str, Node], listed: bool, _: bool) -> Node:
        ways: list[Node] = [] if listed else [node.end]
        ways += (Seq((lit(char), follows)) for char, follows in forks.items())
        outside = complement([*never, *((ord(char), ord(char)) for char in forks)])
        ways += [Seq((outside, node.rest)), *([] if is_nothing(node.other) else [node.other])]
        return alt(*ways)

    return fold_words(node.words, fold)


def measured_on(node: Measured) -> Alt:
    """The end or the next character of a measured text, and then the rest of it."""
    edges, ends = node.states[node.start]
    ways: list[Node] = [Lit(node.end)] if ends and node.low == 0 else []
    if node.high != 0:
        low, high = max(node.low - 1, 0), None if node.high is None else node.high - 1
        for char, to in edges:
            ways.append(Seq((char, Measured(node.states, to, low, high, node.end))))
    return Alt(tuple(ways))


def measured_way(node: Measured) -> list[int] | None:
    """The edges to take, by their places, for a text of the fewest characters; None where there is no text."""
    ending = [{at for at, (_, ends) in enumerate(node.states) if ends}]  # [n]: before n more characters
    most = node.low + len(node.states) if node.high is None else min(node.high, node.low + len(node.states))
    while len(ending) <= node.low or node.start not in ending[-1]:
        if len(ending) > most:
            return None
        ending.append({at for at, (edges, _) in enumerate(node.states) if any(to in ending[-1] for _, to in edges)})
    way: list[int] = []
    at = node.start
    for left in reversed(ending[:-1]):
        way.append(next(place for place, (_, to) in enumerate(node.states[at][0]) if to in left))
        at = node.states[at][0][way[-1]][1]
    return way


def chars(ranges: Iterable[tuple[int, int]]) -> Chars:
    """A character class from ranges in any order, overlapping or not."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return Chars(tuple(merged))


def complement(ranges: Iterable[tuple[int, int]]) -> Chars:
    """Every character outside `ranges`."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in chars(ranges).ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE_POINT:
        gaps.append((start, MAX_CODE_POINT))
    return Chars(tuple(gaps))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside `node`; calls are edges between rules and not followed."""
    match node:
        case Seq(parts) | Alt(parts):
            return parts
        case Repeat(body) | Capture(_, body) | Without(body):
            return (body,)
        case Unlisted():
            return (unlisted_out(node),)
        case Measured(states):
            return tuple(char for edges, _ in states for char, _ in edges)
        case AnyOrder(members, extra, separator, close):
            between = (separator,) if extra is None else (separator, extra)
            return (*(member for member, _ in members), *between, close)
        case Text(stops=stops, after=after):
            arms = tuple(arm for _, arm in stops)
            return arms if after is None else (*arms, after)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything inside it, without following calls."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def reachable(root: Rule) -> list[Rule]:
    """`root` and every rule that it can reach, in the order of first mention."""
    rules = {id(root): root}
    pending = [root]
    while pending:
        for node in walk(pending.pop().body):
            if isinstance(node, Call) and id(node.rule) not in rules:
                rules[id(node.rule)] = node.rule
                pending.append(node.rule)
    return list(rules.values())
