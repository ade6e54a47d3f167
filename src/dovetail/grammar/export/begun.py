"""The grammar of the texts that may follow a prefix, where the prompt of a model holds the beginning of its answer."""

from __future__ import annotations

from dovetail.errors import ExportError
from dovetail.grammar import ir

MAX_PREFIX = 20_000
MAX_DEPTH = 250


def continuation(root: ir.Rule, prefix: str) -> ir.Rule:
    """The grammar of the texts that `root` accepts after `prefix`; `root` is portable, and so is the result.

    This is Brzozowski's derivative, a character at a time. Special tokens in the prefix count as their texts.
    """
    if len(prefix) > MAX_PREFIX:
        problem = f"the text that is to be continued has {len(prefix)} characters"
        raise ExportError(problem, f"rule {root.name}", f"continue at most {MAX_PREFIX}")
    empty = _empty_rules(root)
    for char in prefix:
        step = _Step(char, empty)
        left = ir.Rule(root.name, step.rest(ir.Call(root), 0))
        empty |= _empty_rules(left)
        root = left
    return root


def _empty_rules(root: ir.Rule) -> set[int]:
    """The identities of the rules that match the empty text."""
    rules = ir.reachable(root)
    empty: set[int] = set()
    size = -1
    while size < len(empty):
        size = len(empty)
        empty.update(id(rule) for rule in reversed(rules) if _is_empty(rule.body, empty))
    return empty


def _is_empty(node: ir.Node, empty: set[int]) -> bool:
    """Whether a node may match the empty text."""
    match node:
        case ir.Lit(data):
            return not data
        case ir.Seq(parts):
            return all(_is_empty(part, empty) for part in parts)
        case ir.Alt(parts):
            return any(_is_empty(part, empty) for part in parts)
        case ir.Repeat(body, low):
            return low == 0 or _is_empty(body, empty)
        case ir.Call(rule):
            return id(rule) in empty
        case _:
            return False


class _Step:
    """What follows one character in each rule."""

    def __init__(self, char: str, empty: set[int]) -> None:
        self._char = char
        self._empty = empty
        self._rules: dict[int, ir.Rule] = {}

    def rest(self, node: ir.Node, depth: int) -> ir.Node:
        """What follows the character in `node`."""
        if depth > MAX_DEPTH:
            raise ExportError(f"rules nest deeper than {MAX_DEPTH}", "", "continue nothing, or use a simpler format")
        match node:
            case ir.Lit(data, special):
                text = data.decode()
                if text[:1] != self._char:
                    return ir.NOTHING
                return ir.Lit(text[1:].encode(), special) if text[1:] else ir.EMPTY
            case ir.Chars(ranges):
                return ir.EMPTY if any(low <= ord(self._char) <= high for low, high in ranges) else ir.NOTHING
            case ir.Seq(parts):
                return self._in_row(parts, depth)
            case ir.Alt(parts):
                return _choice([self.rest(part, depth + 1) for part in parts])
            case ir.Repeat(body, low, high):
                fewer = 0 if _is_empty(body, self._empty) else max(low - 1, 0)
                again = ir.EMPTY if high == 1 else ir.Repeat(body, fewer, None if high is None else high - 1)
                return _row(self.rest(body, depth + 1), again)
            case ir.Call(rule):
                return self._in_rule(rule, depth)
            case _:
                return ir.NOTHING  # a token by its id is no text

    def _in_row(self, parts: tuple[ir.Node, ...], depth: int) -> ir.Node:
        ways = []
        for index, part in enumerate(parts):
            ways.append(_row(self.rest(part, depth + 1), *parts[index + 1 :]))
            if not _is_empty(part, self._empty):
                break
        return _choice(ways)

    def _in_rule(self, rule: ir.Rule, depth: int) -> ir.Node:
        known = self._rules.get(id(rule))
        if known is None:
            known = self._rules[id(rule)] = ir.Rule(f"{rule.name}-rest", ir.NOTHING)
            known.body = self.rest(rule.body, depth + 1)
            if ir.is_nothing(known.body):
                return ir.NOTHING
        return ir.Call(known)


def _row(first: ir.Node, *parts: ir.Node) -> ir.Node:
    return ir.NOTHING if ir.is_nothing(first) else ir.seq(first, *parts)


def _choice(ways: list[ir.Node]) -> ir.Node:
    kept = [way for way in dict.fromkeys(ways) if not ir.is_nothing(way)]
    return ir.alt(*kept) if kept else ir.NOTHING
