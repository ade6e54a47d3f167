"""How many texts a regular language has, and whether all of its beginnings go on for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from dovetail.grammar.ir import Alt, Call, Chars, Lit, Node, Repeat, Rule, Seq, Unlisted

from .memory import by_identity

_MAX_KEYS = 1_000  # that are counted
_MAX_DEPTH = 100  # of languages whose texts are counted


@by_identity(4096)
def grows(language: Node) -> bool:
    """Whether every beginning of a text of this regular language is the beginning of infinitely many.

    Where it says no, that may not be so: it goes by the form of the language.
    """
    rules = [Rule("keys", language)]
    told, endless = _endless(rules)
    if len(endless) < len(rules):
        told = [_told(rule.body, endless, []) for rule in rules]
    return all(one & _GROWS == _GROWS for one in told)


# What is told of a node: it loops itself, its texts can go on for ever, infinitely many do so from every place in it,
# it has a character.
_LOOPS, _INFINITE, _EVERYWHERE, _SOLID = 1, 2, 4, 8
_GROWS = _INFINITE | _EVERYWHERE


def _endless(rules: list[Rule]) -> tuple[list[int], set[int]]:
    """What is told of rules where all go on for ever, and which do; those that are called come to `rules` as well."""
    told: list[int] = []
    callers: dict[int, list[int]] = {id(rules[0]): []}
    waiting: dict[int, int] = {}
    loops: set[int] = set()
    for rule in rules:
        calls: list[Rule] = []
        told.append(_told(rule.body, None, calls))
        if told[-1] & _LOOPS:
            loops.add(id(rule))
        waiting[id(rule)] = len(calls)
        for callee in calls:
            if id(callee) not in callers:
                callers[id(callee)] = []
                rules.append(callee)
            callers[id(callee)].append(id(rule))
    # From the leaves upwards: what does not loop itself and calls nothing that loops.
    finite: set[int] = set()
    pending = [key for key, calls_left in waiting.items() if not calls_left and key not in loops]
    while pending:
        key = pending.pop()
        finite.add(key)
        for caller in callers[key]:
            waiting[caller] -= 1
            if not waiting[caller] and caller not in loops:
                pending.append(caller)
    return told, waiting.keys() - finite


def _told(node: Node, endless: set[int] | None, calls: list[Rule]) -> int:
    """What is told of a node whose callees in `endless` go on for ever, or all; they come to `calls`."""
    if type(node) is Seq:
        told, everywhere = 0, _EVERYWHERE
        for part in reversed(node.parts):
            one = _told(part, endless, calls)
            if not (one & _EVERYWHERE or told & _INFINITE):
                everywhere = 0
            told |= one
        return told & ~_EVERYWHERE | everywhere
    if type(node) is Call:
        calls.append(node.rule)  # which is looked at by itself
        return _EVERYWHERE | _SOLID | (_INFINITE if endless is None or id(node.rule) in endless else 0)
    if type(node) is Lit:
        return _SOLID if node.data else _EVERYWHERE
    if type(node) is Chars:
        return _SOLID
    if type(node) is Alt:
        told, everywhere = 0, _EVERYWHERE
        for part in node.parts:
            one = _told(part, endless, calls)
            told |= one
            everywhere &= one
        return told & ~_EVERYWHERE | everywhere
    if type(node) is Repeat:
        one = _told(node.body, endless, calls)
        return one | _LOOPS | _GROWS if node.high is None and one & _SOLID else one
    return _LOOPS | _GROWS | _SOLID if type(node) is Unlisted else 0


def number_of_keys(languages: Iterable[Node | None], enough: int) -> int | None:
    """How many keys there are in disjoint languages; None where they are enough, or more than anybody says."""
    total = 0
    most = min(enough, _MAX_KEYS)
    for language in languages:
        found = None if language is None or not most else _words(language, most, ())
        if found is None:
            return None
        total += len(found)
    return total


def _words(node: Node, most: int, above: tuple[Rule, ...]) -> set[str] | None:
    match node:
        case Lit(data):
            return {data.decode()}
        case Chars(ranges):
            codes = (code for low, high in ranges for code in range(low, high + 1) if not 0xD800 <= code <= 0xDFFF)
            return _fewer({chr(code) for code in islice(codes, most)}, most)
        case Seq(parts):
            return _joined([_words(part, most, above) for part in parts], most)
        case Alt(parts):
            found = [_words(part, most, above) for part in parts]
            return _fewer({word for words in found for word in words or ()}, most) if None not in found else None
        case Repeat(body, low, high):
            once = _words(body, most, above)
            if once is None or high is None or high > _MAX_DEPTH:
                return {""} if high == 0 else None
            return _joined([once] * low + [once | {""}] * (high - low), most)
        case Call(rule) if rule not in above and len(above) < _MAX_DEPTH:
            return _words(rule.body, most, (*above, rule))
        case _:
            return None


def _fewer(words: set[str], most: int) -> set[str] | None:
    return words if len(words) < most else None


def _joined(parts: Sequence[set[str] | None], most: int) -> set[str] | None:
    found = {""}
    for words in parts:
        if words is None:
            return None
        longer: set[str] = set()
        for first in found:
            longer.update(first + second for second in words)
            if len(longer) >= most:
                return None
        found = longer
    return found
