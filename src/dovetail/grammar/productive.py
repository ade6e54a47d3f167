"""The rules that some text matches: one that needs itself in each of its texts matches nothing."""

from __future__ import annotations

from collections.abc import Iterable

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


def matches(root: Node) -> bool:
    """Whether some text matches `root`."""
    return is_productive(root, productive_rules([root]))


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
    if type(node) is Seq:
        return all(is_productive(part, rules) for part in node.parts)
    if type(node) is Alt:
        return any(is_productive(part, rules) for part in node.parts)
    if type(node) is Repeat:
        return node.low == 0 or is_productive(node.body, rules)
    if type(node) is Chars:
        return bool(node.ranges)
    if type(node) is Tokens:
        return node.exclude or bool(node.tokens)
    if type(node) is Unlisted:
        return is_productive(node.end, rules)
    if type(node) is AnyOrder:
        needed = (member for member, required in node.members if required)
        return is_productive(node.close, rules) and all(is_productive(member, rules) for member in needed)
    return True
