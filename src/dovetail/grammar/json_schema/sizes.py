"""How many texts a regular language has, and whether all of its beginnings go on for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

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
    return all(one.infinite and one.everywhere for one in told)


class _Told(NamedTuple):
    """Of a node: it loops itself, its texts can go on for ever, infinitely many do so from every place, it has any."""

    loops: bool
    infinite: bool
    everywhere: bool
    solid: bool


def _endless(rules: list[Rule]) -> tuple[list[_Told], set[int]]:
    """What is told of rules where all go on for ever, and which do; those that are called come to `rules` as well."""
    told: list[_Told] = []
    callers: dict[int, list[int]] = {id(rules[0]): []}
    waiting: dict[int, int] = {}
    loops: set[int] = set()
    for rule in rules:
        calls: list[Rule] = []
        told.append(_told(rule.body, None, calls))
        if told[-1].loops:
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


_NEVER, _CHARACTER = _Told(False, False, False, False), _Told(False, False, False, True)
_EMPTY, _ALWAYS = _Told(False, False, True, False), _Told(True, True, True, True)


def _told(node: Node, endless: set[int] | None, calls: list[Rule]) -> _Told:
    """What is told of a node whose callees in `endless` go on for ever, or all; they come to `calls`."""
    match node:
        case Seq(parts):
            loops = infinite = solid = False
            everywhere = True
            for part in reversed(parts):
                one = _told(part, endless, calls)
                everywhere = everywhere and (one.everywhere or infinite)
                loops, infinite, solid = loops or one.loops, infinite or one.infinite, solid or one.solid
            return _Told(loops, infinite, everywhere, solid)
        case Call(rule):
            calls.append(rule)
            return _Told(False, endless is None or id(rule) in endless, True, True)  # its rule is looked at by itself
        case Lit(data):
            return _CHARACTER if data else _EMPTY
        case Chars():
            return _CHARACTER
        case Alt(parts):
            told = [_told(part, endless, calls) for part in parts]
            loops, infinite = any(one.loops for one in told), any(one.infinite for one in told)
            return _Told(loops, infinite, all(one.everywhere for one in told), any(one.solid for one in told))
        case Repeat(body, _, high):
            one = _told(body, endless, calls)
            again = high is None and one.solid
            return _Told(one.loops or again, one.infinite or again, one.everywhere or again, one.solid)
        case Unlisted():
            return _ALWAYS
        case _:
            return _NEVER


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
