"""Remove what can match nothing: branches that would lead a generation into a dead end."""

from __future__ import annotations

from dovetail.grammar.ir import (
    NOTHING,
    Alt,
    AnyOrder,
    Call,
    Chars,
    Node,
    Repeat,
    Rule,
    Seq,
    Without,
    alt,
    reachable,
    walk,
)


def prune(root: Node) -> Node:
    """`root` without the branches that match nothing."""
    rules = reachable(Rule("root", root))[1:]
    empty = {id(rule) for rule in rules}
    growing = True
    while growing:
        fruitful = [rule for rule in rules if id(rule) in empty and _fruitful(rule.body, empty)]
        growing = bool(fruitful)
        empty.difference_update(id(rule) for rule in fruitful)
    for rule in rules:
        if id(rule) not in empty and _has_waste(rule.body, empty):
            rule.body = _pruned(rule.body, empty)
    return _pruned(root, empty) if _has_waste(root, empty) else root


def _has_waste(node: Node, empty: set[int]) -> bool:
    return any(part == NOTHING or (isinstance(part, Call) and id(part.rule) in empty) for part in walk(node))


def _fruitful(node: Node, empty: set[int]) -> bool:
    match node:
        case Call(rule):
            return id(rule) not in empty
        case Seq(parts):
            return all(_fruitful(part, empty) for part in parts)
        case Alt(parts):
            return any(_fruitful(part, empty) for part in parts)
        case Repeat(body, low):
            return low == 0 or _fruitful(body, empty)
        case Chars(ranges):
            return bool(ranges)
        case Without(body):
            return _fruitful(body, empty)
        case AnyOrder(members, _, _, close):
            return _fruitful(close, empty) and all(_fruitful(member, empty) for member, needed in members if needed)
        case _:
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
        case AnyOrder(members, extra, separator, close):
            kept_members = [(_pruned(member, empty), required) for member, required in members]
            if any(required and member == NOTHING for member, required in kept_members):
                return NOTHING
            fruitful = tuple(pair for pair in kept_members if pair[0] != NOTHING)
            between = None if extra is None else _pruned(extra, empty)
            return AnyOrder(fruitful, None if between == NOTHING else between, separator, close)
        case _:
            return node
