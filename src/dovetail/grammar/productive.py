"""The rules that some text matches: one that needs itself in each of its texts matches nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dovetail.grammar.ir import (
    Alt,
    AnyOrder,
    Call,
    Chars,
    Lit,
    Node,
    Repeat,
    Rule,
    Seq,
    Tokens,
    Unlisted,
    children,
)

_MAX_DEPTH = 50  # calls on the way to a text; longer ways are found rule by rule


def matches(root: Node) -> bool:
    """Whether some text matches `root`."""
    return _TextSearch().leads_through(root, 0) or is_productive(root, productive_rules([root]))


class _TextSearch:
    """A search for one text, which visits only what that text needs: most rules of a grammar stay out of it."""

    def __init__(self) -> None:
        self._has_text: dict[int, bool] = {}  # by the identity of a rule; one that needs itself has none

    def leads_through(self, node: Node, depth: int) -> bool:
        """Whether a text of `node` was found."""
        if type(node) is Call:
            key = id(node.rule)
            if key not in self._has_text and depth < _MAX_DEPTH:
                self._has_text[key] = False
                self._has_text[key] = self.leads_through(node.rule.body, depth + 1)
            return self._has_text.get(key, False)
        return _holds(node, lambda part: self.leads_through(part, depth))


def productive_rules(roots: Iterable[Node]) -> set[int]:
    """The identities of the rules that `roots` can reach and some text matches."""
    rules = _reached(roots)
    productive: set[int] = set()
    size = -1
    while size < len(productive) < len(rules):
        size = len(productive)
        # Rules come before those that they call, so that one round from the end mostly does.
        productive.update(
            id(rule) for rule in reversed(rules) if id(rule) not in productive and is_productive(rule.body, productive)
        )
    return productive


def _reached(roots: Iterable[Node]) -> list[Rule]:
    reached: dict[int, Rule] = {}
    pending = [*roots]
    while pending:
        node = pending.pop()
        if type(node) is Call:
            if id(node.rule) not in reached:
                reached[id(node.rule)] = node.rule
                pending.append(node.rule.body)
        elif type(node) is Seq or type(node) is Alt:
            pending += node.parts
        elif type(node) is Unlisted:
            pending.append(node.end)  # which all ways to leave the words share
        elif type(node) is not Lit and type(node) is not Chars:
            pending += children(node)
    return list(reached.values())


def is_productive(node: Node, rules: set[int]) -> bool:
    """Whether some text matches `node`, where the rules with these identities match some; other nodes are taken to."""
    if type(node) is Call:
        return id(node.rule) in rules
    return _holds(node, lambda part: is_productive(part, rules))


def _holds(node: Node, ask: Callable[[Node], bool]) -> bool:
    """Whether some text matches a node that is no call, asked about its parts."""
    if type(node) is Seq:
        return all(map(ask, node.parts))
    if type(node) is Alt:
        return any(map(ask, node.parts))
    if type(node) is Repeat:
        return node.low == 0 or ask(node.body)
    if type(node) is Chars:
        return bool(node.ranges)
    if type(node) is Tokens:
        return node.exclude or bool(node.tokens)
    if type(node) is Unlisted:
        return ask(node.end)
    if type(node) is AnyOrder:
        return ask(node.close) and all(ask(member) for member, required in node.members if required)
    return True
