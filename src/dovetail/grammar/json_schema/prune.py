"""Whether anything matches a node: a schema that refers to itself may need a value of itself in every value."""

from __future__ import annotations

from dovetail.grammar.ir import Alt, AnyOrder, Call, Chars, Lit, Node, Repeat, Rule, Seq, Unlisted, children

# Names of rules that are made only where they match; they call nothing that is looked at.
_SCALARS = frozenset(("escaped", "integer", "key_tail", "number", "pattern", "string", "string_tail", "ws"))


def matches(root: Node) -> bool:
    """Whether some text matches `root`; what is dead inside of it the core leaves out itself."""
    rules = composed(root)
    empty = {id(rule) for rule in rules}
    size = len(empty) + 1
    while len(empty) < size:
        size = len(empty)
        # Rules are found before those that they call, so that one round from the end mostly does.
        for rule in reversed(rules):
            if id(rule) in empty and _matches(rule.body, empty):
                empty.discard(id(rule))
    return _matches(root, empty)


def composed(root: Node) -> list[Rule]:
    """The rules that `root` can reach, those of scalars left aside."""
    found: dict[int, Rule] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if type(node) is Call:
            rule = node.rule
            if rule.name not in _SCALARS and id(rule) not in found:
                found[id(rule)] = rule
                pending.append(rule.body)
        elif type(node) is Seq or type(node) is Alt:
            pending += node.parts
        elif type(node) is Unlisted:
            pending.append(node.end)  # which all ways to leave the words share
        elif type(node) is not Lit and type(node) is not Chars:
            pending += children(node)
    return list(found.values())


def _matches(node: Node, empty: set[int]) -> bool:
    if type(node) is Call:
        return id(node.rule) not in empty
    if type(node) is Seq:
        return all(_matches(part, empty) for part in node.parts)
    if type(node) is Alt:
        return any(_matches(part, empty) for part in node.parts)
    if type(node) is Repeat:
        return node.low == 0 or _matches(node.body, empty)
    if type(node) is Chars:
        return bool(node.ranges)
    if type(node) is Unlisted:
        return _matches(node.end, empty)
    if type(node) is AnyOrder:
        needed = (member for member, required in node.members if required)
        return _matches(node.close, empty) and all(_matches(member, empty) for member in needed)
    return True
