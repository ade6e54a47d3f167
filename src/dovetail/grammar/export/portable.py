"""A grammar in the words that all target languages know: literals, classes, sequences, choices, counts, calls."""

from __future__ import annotations

from dataclasses import replace

from dovetail.errors import ExportError, GrammarError, LimitError
from dovetail.grammar import ir, regex
from dovetail.grammar.export.text import free_text
from dovetail.grammar.productive import is_productive, productive_rules

MAX_ANY_ORDER = 5
MAX_MEASURED = 10_000
MAX_DEPTH = 200
MAX_HEIGHT = 12


def portable(root: ir.Rule) -> ir.Rule:
    """A copy of `root` without captures, free text and `Without`, and without parts that match nothing."""
    return pruned(_Copy().of(root))


class _Copy:
    def __init__(self) -> None:
        self._rules: dict[int, ir.Rule] = {}
        self._expanded: dict[ir.Node, ir.Node] = {}
        self._orders: dict[ir.AnyOrder, ir.Rule] = {}
        self._current = ""

    def of(self, root: ir.Rule) -> ir.Rule:
        reachable = ir.reachable(root)
        self._rules = {id(rule): ir.Rule(rule.name, ir.NOTHING) for rule in reachable}
        for rule in reachable:
            self._current = rule.name
            self._rules[id(rule)].body = self._node(rule.body, 0)
        return self._rules[id(root)]

    def _fail(self, problem: str, fix: str) -> ExportError:
        return ExportError(problem, f"rule {self._current}", fix)

    def _node(self, node: ir.Node, depth: int) -> ir.Node:
        if depth > MAX_DEPTH:
            raise self._fail(f"nodes nest deeper than {MAX_DEPTH}", "name inner parts as rules")
        match node:
            case ir.Lit(data, special):
                return ir.Lit(self._decoded(data).encode(), special)
            case ir.Chars(ranges):
                return ir.Chars(_without_surrogates(ranges))
            case ir.Bytes(ranges):
                if any(high > 0x7F for _, high in ranges):
                    raise self._fail("single bytes above 7F are no characters", "describe the text in characters")
                return ir.Chars(ranges)
            case ir.Seq(parts):
                return ir.seq(*(self._node(part, depth + 1) for part in parts))
            case ir.Alt(parts):
                return ir.alt(*(self._node(part, depth + 1) for part in parts))
            case ir.Unlisted():
                return self._node(ir.unlisted_out(node), depth)
            case ir.Measured():
                if node not in self._expanded:
                    self._expanded[node] = self._measured(node, depth)
                return self._expanded[node]
            case ir.AnyOrder(members):
                if len(members) > MAX_ANY_ORDER:
                    raise self._fail(f"more than {MAX_ANY_ORDER} members come in any order", "fix their order")
                if node not in self._orders:
                    self._orders[node] = rule = ir.Rule(f"{self._current}-order", ir.NOTHING)
                    rule.body = self._node(ir.unfolded(node), depth + 1)
                return ir.Call(self._orders[node])
            case ir.Repeat(body, low, high):
                return ir.EMPTY if high == 0 else ir.Repeat(self._node(body, depth + 1), low, high)
            case ir.Call(rule):
                return ir.Call(self._rules[id(rule)])
            case ir.Capture(_, body):
                return self._node(body, depth + 1)
            case ir.Text() | ir.Without():
                if node not in self._expanded:
                    self._expanded[node] = self._expand(node, depth)
                return self._expanded[node]
            case ir.Tokens():
                return node
            case ir.NewKey():
                return ir.EMPTY  # no grammar can say it

    def _measured(self, node: ir.Measured, depth: int) -> ir.Node:
        """A rule for each state and number of characters."""
        rules = {node: ir.Rule(f"{self._current}-text", ir.NOTHING)}
        pending = [node]
        for place in pending:
            ways: list[ir.Node] = []
            for way in ir.measured_on(place).parts:
                if isinstance(way, ir.Seq) and isinstance(rest := way.parts[1], ir.Measured):
                    if rest not in rules:
                        rules[rest] = ir.Rule(f"{self._current}-text", ir.NOTHING)
                        pending.append(rest)
                    ways.append(ir.Seq((self._node(way.parts[0], depth + 1), ir.Call(rules[rest]))))
                else:
                    ways.append(self._node(way, depth + 1))
            rules[place].body = ir.alt(*ways)
            if len(rules) > MAX_MEASURED:
                raise self._fail("a pattern takes too many characters to write out", "use smaller limits")
        return ir.Call(rules[node])

    def _decoded(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self._fail(f"the literal {data!r} is not well-formed UTF-8", "use whole characters") from None

    def _expand(self, node: ir.Text | ir.Without, depth: int) -> ir.Node:
        try:
            if isinstance(node, ir.Without):
                return regex.without(node.body, node.excludes)
            stops = tuple((stop, self._node(arm, depth + 1)) for stop, arm in node.stops)
            after = None if node.after is None else self._node(node.after, depth + 1)
            return free_text(replace(node, stops=stops, after=after), f"{self._current}-text")
        except (GrammarError, LimitError) as error:
            raise self._fail(f"free text cannot be written out: {error.problem}", error.fix) from None


def _without_surrogates(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Ranges whose ends are characters; that surrogates lie inside of one does no harm."""
    kept = []
    for low, high in ranges:
        low = 0xE000 if 0xD800 <= low <= 0xDFFF else low
        high = 0xD7FF if 0xD800 <= high <= 0xDFFF else high
        if low <= high:
            kept.append((low, high))
    return tuple(kept)


def pruned(root: ir.Rule) -> ir.Rule:
    """A portable grammar without the parts that match nothing; an error where nothing is left."""
    rules = ir.reachable(root)
    alive = productive_rules([ir.Call(root)])
    if id(root) not in alive:
        raise ExportError(
            "no text matches the grammar", f"rule {root.name}", "remove the part that contradicts the rest"
        )
    for rule in rules:
        rule.body = _Shallow(rule.name).of(_cleaned(rule.body, alive))
    return root


class _Shallow:
    """Moves what nests deep into rules of its own: parsers of the target languages bound their depth."""

    def __init__(self, name: str) -> None:
        self._name = f"{name}-part"

    def of(self, body: ir.Node) -> ir.Node:
        return self._measured(body)[0]

    def _measured(self, node: ir.Node) -> tuple[ir.Node, int]:
        match node:
            case ir.Seq(parts) | ir.Alt(parts):
                measured = [self._measured(part) for part in parts]
                height = 1 + max((height for _, height in measured), default=0)
                node = type(node)(tuple(part for part, _ in measured))
            case ir.Repeat(body, low, high):
                inner, height = self._measured(body)
                height += 1
                node = ir.Repeat(inner, low, high)
            case _:
                return node, 0
        return (node, height) if height < MAX_HEIGHT else (ir.Call(ir.Rule(self._name, node)), 0)


def _cleaned(node: ir.Node, alive: set[int]) -> ir.Node:
    match node:
        case ir.Seq(parts):
            return ir.seq(*(_cleaned(part, alive) for part in parts))
        case ir.Alt(parts):
            return ir.alt(*(_cleaned(part, alive) for part in parts if is_productive(part, alive)))
        case ir.Repeat(body, low, high):
            return ir.Repeat(_cleaned(body, alive), low, high) if is_productive(body, alive) else ir.EMPTY
        case _:
            return node
