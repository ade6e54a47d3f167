"""The languages of patterns and of nodes that are regular: without captures and tokens, and calls at the end only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.anchors import containing, refuse_outlook, trimmed
from dovetail.grammar.regex.automaton import Automaton, minimize, to_node
from dovetail.grammar.regex.charset import Budget, Ranges, bits, characters
from dovetail.grammar.regex.derivatives import Derivatives, explore
from dovetail.grammar.regex.parser import read
from dovetail.grammar.regex.syntax import (
    ANYTHING,
    Look,
    asserts,
    but,
    called,
    children,
    narrow,
    sequence,
    somewhere,
    span,
)

MAX_WORK = 200_000
MAX_MEASURED = 110  # states; the more of them, the less often one is seen again

Limits = tuple[int, int | None]
States = tuple[tuple[tuple[tuple[Ranges, int], ...], bool], ...]


def parse(pattern: str, *, flags: str = "", dotall: bool = True) -> ir.Node:
    """The texts that `pattern` matches from end to end; `.` matches line ends too unless `dotall` is off."""
    if "\0" in pattern:
        problem = "the pattern holds a null character"
        raise GrammarError(problem, f"offset {pattern.index(chr(0))}", "write \\0")
    tree = read(pattern, "s" * dotall + flags)
    refuse_outlook(tree)
    node = _resolved(trimmed(tree))
    if is_empty(node):
        raise GrammarError("no text can match the pattern", "offset 0", "remove the part that contradicts the rest")
    return node


# One pattern comes with several limits, and beside several others.
@lru_cache(maxsize=1024)
def search(pattern: str, *, flags: str = "", dotall: bool = False) -> ir.Node:
    """The texts in which `pattern` matches somewhere, as JSON Schema means it; `ir.NOTHING` where there are none."""
    node = _resolved(containing(read(pattern, "s" * dotall + flags)))
    return ir.NOTHING if is_empty(node) else node


def _resolved(pattern: ir.Node) -> ir.Node:
    """`pattern` with its assertions worked into it."""
    if not asserts(pattern):
        return pattern
    parts = pattern.parts if type(pattern) is ir.Seq else (pattern,)
    head = next(index for index, part in enumerate(parts) if asserts(part))
    if any(isinstance(rule, Look) and not rule.ahead for rule in called(pattern)):
        head = 0  # what comes first has a say in what is asserted later
    return sequence((*parts[:head], _combined([sequence(parts[head:])], [])))


def language(
    patterns: Iterable[str],
    barred: Iterable[str] = (),
    low: int = 0,
    high: int | None = None,
    words: Iterable[str] = (),
) -> ir.Node:
    """The texts of low to high characters but `words` in which all patterns match somewhere and none of `barred`."""
    never = [search(one) for one in barred]
    return combined([search(one) for one in patterns], [*never, *map(ir.lit, words)], (low, high))


def intersect(*nodes: ir.Node, barred: Iterable[ir.Node] = ()) -> ir.Node:
    """The texts that all of `nodes` match and none of `barred`."""
    return _intersected(nodes, tuple(barred))


# Comparing two schemas asks for one intersection of patterns many times.
@lru_cache(maxsize=4096)
def _intersected(wanted: tuple[ir.Node, ...], barred: tuple[ir.Node, ...]) -> ir.Node:
    return combined(wanted, barred)


def combined(wanted: Sequence[ir.Node], barred: Sequence[ir.Node], limits: Limits = (0, None)) -> ir.Node:
    """The texts of as many characters that all of `wanted` and none of `barred` match."""
    wanted = [node for node in wanted if node != ANYTHING]
    barred = _joined(barred)
    if not barred and len(wanted) < 2:
        narrowed = narrow(wanted[0] if wanted else ANYTHING, *limits)
        if narrowed is not None:
            return ir.NOTHING if is_empty(narrowed) else narrowed
    if barred and not wanted and limits == (0, None) and (words := _words(ir.alt(*barred))) is not None:
        return but(sorted(words))
    return _combined(wanted + _lengths(limits), barred)


def _lengths(limits: Limits) -> list[ir.Node]:
    return [] if limits == (0, None) else [ir.Repeat(ir.ANY_CHAR, *limits)]


def _joined(barred: Sequence[ir.Node]) -> list[ir.Node]:
    """Barred nodes, those that are words as one."""
    words = [_words(node) for node in barred]
    patterns = [node for node, few in zip(barred, words, strict=True) if few is None]
    listed = sorted({word for few in words for word in few or ()})
    return [*patterns, ir.Alt(tuple(map(ir.lit, listed)))] if listed else patterns


def _words(node: ir.Node) -> list[str] | None:
    """The texts of a literal or of a choice between literals, None for any other node."""
    if type(node) is ir.Lit:
        return [node.data.decode()]
    words = [_words(part) for part in node.parts] if type(node) is ir.Alt else [None]
    return None if None in words else [word for few in words for word in few or ()]


def _combined(wanted: list[ir.Node], barred: list[ir.Node]) -> ir.Node:
    try:
        return to_node(minimize(explore(wanted, barred, Budget(MAX_WORK))))
    except LimitError:
        # A search for something long can be exponentially smaller when it is not deterministic.
        return to_node(explore(wanted or [ANYTHING], barred, Budget(MAX_WORK), split=True))


def without(body: ir.Node, excludes: Sequence[bytes]) -> ir.Node:
    """The texts of `body` that contain none of `excludes`."""
    return combined([body], [somewhere(excludes)])


def shortest(node: ir.Node) -> ir.Node:
    """The texts of `node` of which no beginning is one, as a lazy reader finds them."""
    automaton = _automaton(node)
    for state in automaton.accepting:
        automaton.edges[state] = {}
    return to_node(minimize(automaton))


def is_empty(node: ir.Node) -> bool:
    """Whether nothing matches `node`, calls and free text taken as matching something."""
    if type(node) is ir.Chars or type(node) is ir.Bytes:
        return not node.ranges
    if type(node) is ir.Seq:
        return any(is_empty(part) for part in node.parts)
    if type(node) is ir.Alt:
        return all(is_empty(part) for part in node.parts)
    if type(node) is ir.Repeat:
        return node.low > 0 and is_empty(node.body)
    return type(node) is ir.Capture and is_empty(node.body)


# What is asked about a language.


def _automaton(*wanted: ir.Node, barred: Sequence[ir.Node] = (), most: int = 5_000) -> Automaton:
    """The smallest automaton of a language, without exits."""
    return minimize(explore(wanted, barred, Budget(MAX_WORK), exits=False, most=most))


@lru_cache(maxsize=256)
def _derivatives(node: ir.Node) -> Derivatives:
    return Derivatives([node], Budget(MAX_WORK))


def admits(node: ir.Node, word: str) -> bool:
    """Whether `word` is one of the texts of a regular node."""
    terms = _derivatives(node)
    terms.budget = Budget(MAX_WORK)
    state = terms.start(node)
    for char in word:
        state = terms.after(state, char)
    return terms.ends(state, ())


# The keys of one pattern may stand in many objects.
@lru_cache(maxsize=1024)
def grows(node: ir.Node) -> bool:
    """Whether every beginning of a text is that of infinitely many; False also where that takes long to see."""
    if span(node)[1] is not None:
        return False
    if _ends_in_loop(node):
        return True
    try:
        automaton = _automaton(node, most=1_000)
    except LimitError:
        return False
    return all(automaton.edges)  # each state leads to an end, and where none is the last, some way there is endless


def _ends_in_loop(node: ir.Node) -> bool:
    """Whether more of the same may follow each text of `node`: seen at the end of a pattern, without an automaton."""
    if type(node) is ir.Seq:
        return bool(node.parts) and _ends_in_loop(node.parts[-1])
    if type(node) is ir.Alt:
        return all(map(_ends_in_loop, node.parts))
    return type(node) is ir.Repeat and node.high is None and type(node.body) is ir.Chars and bool(node.body.ranges)


@lru_cache(maxsize=1024)
def count(node: ir.Node, most: int) -> int | None:
    """How many texts `node` matches, None where they are `most` or more, or hard to count."""
    try:
        automaton = _automaton(node, most=1_000)
    except LimitError:
        return None
    sizes = [sum(high - low + 1 for low, high in ranges) for ranges in automaton.alphabet]
    total, layer = 0, {0: 1}  # how many texts lead to each state, by one more character each time
    for _ in automaton.edges:
        total += sum(texts for state, texts in layer.items() if state in automaton.accepting)
        after: dict[int, int] = {}
        for state, texts in layer.items():
            for target, mask in automaton.edges[state].items():
                after[target] = after.get(target, 0) + texts * sum(sizes[symbol] for symbol in bits(mask))
        layer = after
    return None if layer or total >= most else total  # what goes on after so many characters goes on forever


# Texts that are measured.


def measured(
    patterns: Iterable[str], barred: Iterable[str], low: int, high: int | None
) -> tuple[States, Limits] | None:
    """The automaton of `language`, for which the core counts the characters, and which of the limits it needs.

    None where the pattern can do without, where the number of characters left does not tell whether a text can be
    completed, or where states are many. No states where nothing matches.
    """
    if (low, high) == (0, None):
        return None
    wanted, never = [search(one) for one in patterns], [search(one) for one in barred]
    if len(wanted) == 1 and not never:
        narrowed = narrow(wanted[0], low, high)
        # The counts of a pattern would be written out as states.
        if narrowed is wanted[0] or (narrowed is not None and _counts(wanted[0])):
            return None
    try:
        automaton = _automaton(*wanted, barred=never, most=4 * MAX_MEASURED)
    except LimitError:
        return None
    if len(automaton.edges) > MAX_MEASURED:
        return None
    fewest = automaton.live().get(0)
    if fewest is None or (high is not None and fewest > high):
        return (), (low, high)
    low = 0 if low <= fewest else low
    # From a state where a text may end that needs another such state next; from any other the way to the next one does.
    if low and any(automaton.accepting.isdisjoint(automaton.edges[state]) for state in automaton.accepting):
        return None
    return _states(automaton), (low, high)


def _counts(node: ir.Node) -> bool:
    pending = [node]
    for part in pending:
        if type(part) is ir.Repeat and (part.low > 1 or (part.high or 0) > 1):
            return True
        pending += children(part)
    return False


def _states(automaton: Automaton) -> States:
    masks = {mask for edges in automaton.edges for mask in edges.values()}
    classes = {mask: characters(automaton.alphabet, mask) for mask in masks}  # most states know the same few
    return tuple(
        (tuple([(classes[mask], target) for target, mask in edges.items()]), state in automaton.accepting)
        for state, edges in enumerate(automaton.edges)
    )
