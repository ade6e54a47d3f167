"""How many texts a regular language has, and whether all of its beginnings go on for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice

from dovetail.grammar.ir import Alt, Call, Chars, Lit, Node, Repeat, Rule, Seq, reachable, walk

_MAX_KEYS = 1_000  # that are counted
_MAX_DEPTH = 100  # of languages whose texts are counted


@lru_cache(maxsize=4096)
def grows(language: Node) -> bool:
    """Whether every beginning of a text of this regular language is the beginning of infinitely many.

    Where it says no, that may not be so: it goes by the form of the language.
    """
    rules = reachable(Rule("keys", language))
    endless = _endless(rules)
    return all(_infinite(rule.body, endless) and _goes_on(rule.body, False, endless) for rule in rules)


def _endless(rules: list[Rule]) -> set[int]:
    """The rules from which a loop can be reached."""
    called = {id(rule): [node.rule for node in walk(rule.body) if isinstance(node, Call)] for rule in rules}
    waiting = {key: len(callees) for key, callees in called.items()}
    callers: dict[int, list[int]] = {}
    for key, callees in called.items():
        for callee in callees:
            callers.setdefault(id(callee), []).append(key)
    # From the leaves upwards: what does not loop itself and calls nothing that loops.
    finite: set[int] = set()
    pending = [id(rule) for rule in rules if not called[id(rule)] and not _infinite(rule.body, set())]
    bodies = {id(rule): rule.body for rule in rules}
    while pending:
        key = pending.pop()
        finite.add(key)
        for caller in callers.get(key, ()):
            waiting[caller] -= 1
            if not waiting[caller] and not _infinite(bodies[caller], set()):
                pending.append(caller)
    return bodies.keys() - finite


def _infinite(node: Node, endless: set[int]) -> bool:
    return any(_loops(part) or (isinstance(part, Call) and id(part.rule) in endless) for part in walk(node))


def _loops(node: Node) -> bool:
    if not isinstance(node, Repeat) or node.high is not None:
        return False
    return any(isinstance(part, Chars | Call) or (isinstance(part, Lit) and part.data) for part in walk(node.body))


def _goes_on(node: Node, after: bool, endless: set[int]) -> bool:
    """Whether infinitely many texts go on from every place in `node`; `after`: they do from its end."""
    match node:
        case Seq(parts):
            for part in reversed(parts):
                if not _goes_on(part, after, endless):
                    return False
                after = after or _infinite(part, endless)
            return True
        case Alt(parts):
            return all(_goes_on(part, after, endless) for part in parts)
        case Repeat(body):
            return _goes_on(body, after or _loops(node), endless)
        case Call():
            return True  # its rule is looked at by itself
        case _:
            return after or node == Lit(b"")


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
