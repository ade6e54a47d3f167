"""Remove what can match nothing: branches that would lead a generation into a dead end."""

from __future__ import annotations

from dovetail.grammar.ir import (
    NOTHING,
    Alt,
    AnyOrder,
    Call,
    Chars,
    Lit,
    Node,
    Repeat,
    Rule,
    Seq,
    Unlisted,
    Without,
    alt,
    children,
)

_SCALARS = frozenset(
    ("integer", "number", "pattern", "string", "ws")
)  # names of rules; they are made only if they match

_PLAIN = frozenset((Lit, Chars))  # they call nothing that is looked at


Ways = dict[int, list[list[Node]]]  # by rule: the values that each way to write it cannot do without


def are_met(ways: Ways) -> bool:
    """Whether every rule of an object or array matches something; False also where that is not certain.

    That is much cheaper to see than by a walk over all nodes, and mostly enough.
    """
    unmet = dict(ways)
    growing = True
    while unmet and growing:
        growing = False
        for rule, told in reversed(list(unmet.items())):  # values come behind the rules that need them
            if any(all(_is_written(value, unmet) for value in way) for way in told):
                del unmet[rule]
                growing = True
    return not unmet


def _is_written(value: Node, unmet: Ways) -> bool:
    if type(value) is Call:
        return id(value.rule) not in unmet
    return type(value) is not Alt or any(_is_written(part, unmet) for part in value.parts)


def prune(root: Node) -> Node:
    """`root` without the branches that match nothing."""
    calls, holed = _called(root)
    inside = _reached(calls)
    empty = set(inside)
    growing = bool(empty)
    while growing:
        # Rules are found before those that they call, so that one round from the end mostly does.
        fruitful = 0
        for key, (rule, _, _) in reversed(inside.items()):
            if key in empty and _fruitful(rule.body, empty):
                empty.discard(key)
                fruitful += 1
        growing = bool(fruitful and empty)
    if not empty and _fruitful(root, empty):
        return root  # what is dead inside of a rule the core leaves out itself
    for key, (rule, called, hole) in inside.items():
        if key not in empty and (hole or any(id(one) in empty for one in called)):
            rule.body = _pruned(rule.body, empty)
    return _pruned(root, empty) if holed or any(id(one) in empty for one in calls) else root


def composed(root: Node) -> list[Rule]:
    """The rules that `root` can reach, those of scalars and spellings left aside: they match something."""
    return [rule for rule, _, _ in _reached(_called(root)[0]).values()]


def _reached(calls: list[Rule]) -> dict[int, tuple[Rule, list[Rule], bool]]:
    """The rules that some rules can reach, with what is told of their bodies."""
    found: dict[int, tuple[Rule, list[Rule], bool]] = {}
    pending = list(calls)
    while pending:
        rule = pending.pop()
        if id(rule) not in found:
            called, hole = _called(rule.body)
            found[id(rule)] = rule, called, hole
            pending += called
    return found


def _called(node: Node) -> tuple[list[Rule], bool]:
    """The rules that a node calls, scalars left aside, and whether something in it matches nothing."""
    found: list[Rule] = []
    hole = False
    pending = [node]
    while pending:
        part = pending.pop()
        if type(part) is Call:
            if part.rule.name not in _SCALARS:
                found.append(part.rule)
        elif type(part) is Seq:
            pending += part.parts
        elif type(part) is Alt:
            pending += part.parts
            hole = hole or not part.parts
        elif type(part) is Unlisted:
            pending += (part.rest, part.other, part.end)
        elif type(part) not in _PLAIN:
            pending += children(part)
    return found, hole


def _fruitful(node: Node, empty: set[int]) -> bool:
    if type(node) is Call:
        return id(node.rule) not in empty
    if type(node) is Seq:
        return all(_fruitful(part, empty) for part in node.parts)
    if type(node) is Alt:
        return any(_fruitful(part, empty) for part in node.parts)
    if type(node) is Repeat:
        return node.low == 0 or _fruitful(node.body, empty)
    if type(node) is Chars:
        return bool(node.ranges)
    if type(node) is Without:
        return _fruitful(node.body, empty)
    if type(node) is Unlisted:
        return any(_fruitful(part, empty) for part in (node.rest, node.other, node.end))
    if type(node) is AnyOrder:
        needed = (member for member, required in node.members if required)
        return _fruitful(node.close, empty) and all(_fruitful(member, empty) for member in needed)
    return True


def _pruned(node: Node, empty: set[int]) -> Node:
    match node:
        case Call(rule):
            return NOTHING if id(rule) in empty else node
        case Seq(parts):
            kept = tuple(_pruned(part, empty) for part in parts)
            return NOTHING if NOTHING in kept else Seq(kept)
        case Alt(parts):
            return alt(*(part for part in (_pruned(part, empty) for part in parts) if part != NOTHING))
        case Repeat(body, low, high):
            inside = _pruned(body, empty)
            if inside != NOTHING:
                return Repeat(inside, low, high)
            return NOTHING if low else Seq(())
        case Unlisted(words, chars, rest, other, end):
            rest, other, end = (_pruned(part, empty) for part in (rest, other, end))
            return NOTHING if rest == other == end == NOTHING else Unlisted(words, chars, rest, other, end)
        case AnyOrder(members, extra, separator, close):
            kept_members = [(_pruned(member, empty), required) for member, required in members]
            if any(required and member == NOTHING for member, required in kept_members):
                return NOTHING
            fruitful = tuple(pair for pair in kept_members if pair[0] != NOTHING)
            between = None if extra is None else _pruned(extra, empty)
            return AnyOrder(fruitful, None if between == NOTHING else between, separator, close)
        case _:
            return node
