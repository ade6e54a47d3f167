"""What patterns are made of: the nodes of a grammar, and assertions, which are worked into them by `derivatives`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.errors import GrammarError
from dovetail.grammar import ir
from dovetail.grammar.regex.charset import Ranges

DIGIT = ir.chars([(48, 57)])
WORD = ir.chars([(48, 57), (65, 90), (95, 95), (97, 122)])
# ECMA-262 counts the vertical tab, the no-break spaces, the byte order mark and all of Zs as white space.
_LONE_SPACES = (0x20, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000, 0xFEFF)
SPACE = ir.chars([(9, 13), (0x2000, 0x200A), (0x2028, 0x2029), *((code, code) for code in _LONE_SPACES)])
LINE_ENDS = ir.chars([(10, 10), (13, 13), (0x2028, 0x2029)])
ANYTHING = ir.star(ir.ANY_CHAR)


@dataclass(slots=True, eq=False)
class Look(ir.Rule):
    """An assertion, which is called: what follows (`ahead`) or precedes this place matches the body, or does not."""

    ahead: bool = True
    negative: bool = False
    offset: int = 0  # for errors


START, END = (ir.Call(Look(name, ir.ANY_CHAR, name == "$", True)) for name in "^$")  # of the text
_NO_LINE_END = ir.complement(LINE_ENDS.ranges)
LINE_START, LINE_END = (ir.Call(Look(name, _NO_LINE_END, name == "$", True)) for name in "^$")
EDGES = (START, END, LINE_START, LINE_END)


def boundary(negative: bool, offset: int) -> ir.Node:
    """A word boundary, or a place that is none."""

    def look(ahead: bool, without: bool) -> ir.Node:
        return ir.Call(Look("\\B" if negative else "\\b", WORD, ahead, without, offset))

    return ir.Alt(
        (ir.Seq((look(False, False), look(True, not negative))), ir.Seq((look(False, True), look(True, negative))))
    )


def children(node: ir.Node) -> tuple[ir.Node, ...]:
    """The nodes directly inside a pattern; calls of assertions have one, other calls none."""
    if type(node) is ir.Seq or type(node) is ir.Alt:  # by type: asked of large patterns again and again
        return node.parts
    if type(node) is ir.Repeat:
        return (node.body,)
    return (node.rule.body,) if type(node) is ir.Call and type(node.rule) is Look else ()


def called(node: ir.Node) -> list[ir.Rule]:
    """The rules that a pattern calls, the assertions in it among them."""
    rules: list[ir.Rule] = []
    pending = [node]
    for part in pending:
        if type(part) is ir.Call:
            rules.append(part.rule)
        pending += [one for one in children(part) if type(one) is not ir.Chars]
    return rules


def asserts(node: ir.Node) -> bool:
    """Whether anything in `node` looks at the text around it."""
    return any(type(rule) is Look for rule in called(node))


def repeat(body: ir.Node, low: int, high: int | None) -> ir.Node:
    """`body` from `low` to `high` times."""
    if high == 0:
        return ir.EMPTY
    return body if low == high == 1 else ir.Repeat(body, low, high)


def union(parts: Iterable[ir.Node]) -> ir.Node:
    """A choice without needless nesting and without parts that match nothing."""
    flat: list[ir.Node] = []
    for part in parts:
        flat.extend(part.parts if type(part) is ir.Alt else (part,))
    return ir.alt(*flat)


_ASCII = [bytes((code,)) for code in range(128)]
_JOINED = frozenset((ir.Seq, ir.Lit, ir.Chars, ir.Alt))  # what does not always stay as it is in a sequence


def sequence(parts: Iterable[ir.Node]) -> ir.Node:
    """A sequence in which neighboring single characters are one literal, NOTHING where a part is."""
    parts = tuple(parts)
    kinds = {*map(type, parts)}
    if _JOINED.isdisjoint(kinds):
        return parts[0] if len(parts) == 1 else ir.Seq(parts)
    if ir.Alt in kinds and any(map(ir.is_nothing, parts)):
        return ir.NOTHING
    if ir.Seq in kinds:
        parts = tuple([piece for part in parts for piece in (part.parts if type(part) is ir.Seq else (part,))])
    joined: list[ir.Node] = []
    data = b""
    for part in parts:
        if type(part) is ir.Lit:
            data += part.data
        elif type(part) is ir.Chars and len(part.ranges) == 1 and part.ranges[0][0] == part.ranges[0][1]:
            code = part.ranges[0][0]
            data += _ASCII[code] if code < 128 else chr(code).encode()
        else:
            if data:
                joined.append(ir.Lit(data))
                data = b""
            joined.append(part)
    if data:
        joined.append(ir.Lit(data))
    return joined[0] if len(joined) == 1 else ir.Seq(tuple(joined))


def decoded(data: bytes) -> str:
    """The characters of `data`, which must be whole."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise GrammarError(f"{data!r} is not well-formed UTF-8", "", "use whole characters") from None


def ranges_of(node: ir.Node) -> Iterable[Ranges]:
    """The classes of characters that a node tells apart, those of nodes inside of it left aside."""
    if type(node) is ir.Chars or (type(node) is ir.Bytes and all(high < 0x80 for _, high in node.ranges)):
        return (node.ranges,)
    if type(node) is ir.Lit:
        return [((ord(one), ord(one)),) for one in decoded(node.data)]
    if type(node) is ir.Unlisted:
        return [((ord(one), ord(one)),) for one in sorted({*"".join(node.words)})]
    free = type(node) is ir.Text and not (node.stops or node.captures or node.max_tokens) and node.after is not None
    if free or isinstance(node, ir.Seq | ir.Alt | ir.Repeat | ir.Call | ir.Without):
        return ()
    raise GrammarError(f"{type(node).__name__} is not regular", "", "use literals, classes and repetition")


def somewhere(words: Iterable[bytes]) -> ir.Node:
    """The texts that contain one of some words."""
    return ir.Seq((ANYTHING, ir.Alt(tuple(map(ir.Lit, words))), ANYTHING))


_REST = ir.Call(ir.Rule("text", ANYTHING))


def but(words: Iterable[str]) -> ir.Node:
    """Any text but these words."""
    return ir.Unlisted(tuple(dict.fromkeys(words)), ir.ANY_CHAR, _REST, ir.NOTHING, ir.EMPTY)


# How many characters a pattern matches.

MAX_KNOWN = 10_000

Span = tuple[int, int | None]  # fewest and most characters
_SPANS: dict[ir.Rule, Span] = {}  # of rules, which are not changed once they are made


def span(node: ir.Node) -> Span:
    """The fewest and most characters of a text of `node`, or bounds of them; assertions and calls may match any."""
    if type(node) is ir.Chars:
        return 1, 1
    if type(node) is ir.Lit:
        size = len(node.data.decode(errors="replace"))
        return size, size
    if type(node) is ir.Seq:
        return sum_of([span(part) for part in node.parts])
    if type(node) is ir.Alt and node.parts:
        lows, highs = zip(*[span(part) for part in node.parts], strict=True)
        return min(lows), None if None in highs else max(highs)
    if type(node) is ir.Repeat:
        low, high = span(node.body)
        most = 0 if high == 0 or node.high == 0 else None if high is None or node.high is None else high * node.high
        return low * node.low, most
    if type(node) is ir.Call and not isinstance(node.rule, Look):
        return _SPANS[node.rule] if node.rule in _SPANS else _rule_span(node.rule)
    return 0, None


def _rule_span(root: ir.Rule) -> Span:
    """The span of a rule; what is met again inside of itself may be of any length."""
    if len(_SPANS) > MAX_KNOWN:
        _SPANS.clear()
    opened: set[ir.Rule] = set()
    pending = [root]
    while pending:
        rule = pending[-1]
        if rule in opened:
            pending.pop()
            _SPANS[rule] = span(rule.body)
        else:
            opened.add(rule)
            pending += [callee for callee in called(rule.body) if callee not in opened]
            _SPANS[rule] = 0, None
    return _SPANS[root]


def sum_of(spans: Iterable[Span]) -> Span:
    """The span of texts one behind the other."""
    lows, highs = zip((0, 0), *spans, strict=True)
    return sum(lows), None if None in highs else sum(highs)


def narrow(node: ir.Node, low: int, high: int | None) -> ir.Node | None:
    """The texts of `node` of low to high characters, where it is a repetition that takes the limits up; or None."""
    fewest, most = span(node)
    if low <= fewest and (high is None or (most is not None and most <= high)):
        return node
    if (most is not None and most < low) or (high is not None and fewest > high):
        return ir.NOTHING
    if type(node) is not ir.Repeat:
        return None
    unit, widest = span(node.body)
    if unit != widest or unit == 0:
        return None
    first = max(node.low, -(-low // unit))
    last = node.high if high is None else high // unit if node.high is None else min(node.high, high // unit)
    return ir.NOTHING if last is not None and first > last else repeat(node.body, first, last)
