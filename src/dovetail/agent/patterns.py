"""Wildcard patterns of rules and of the glob tool, matched in time linear in the text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dovetail.errors import InputError

_MAX_ALTERNATIVES = 256
_MAX_TABLE = 20_000

# One step of a pattern: a literal character, or one of these.
_ANY = object()  # any run of characters, none included
_SEGMENT = object()  # any run of characters without a slash
_ONE = object()  # one character that is no slash
_FOLDERS = object()  # any number of whole folders, each with its slash


@dataclass(frozen=True, slots=True)
class _Class:
    """A bracket expression such as [a-z] or [!0-9]."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def holds(self, char: str) -> bool:
        return char != "/" and any(low <= char <= high for low, high in self.ranges) != self.negated


def matches_text(pattern: str, text: str) -> bool:
    """Whether a pattern in which only `*` is special takes the whole text, slashes included."""
    return _text_machine(pattern).takes(text)


def matches_path(pattern: str, path: str, *, ignore_case: bool = False, braces: bool = True) -> bool:
    """Whether a glob with `*`, `**`, `?`, `[...]` and `{a,b}` takes the whole path."""
    if ignore_case:
        pattern, path = pattern.lower(), path.lower()
    return any(machine.takes(path) for machine in _glob_machines(pattern, braces))


@lru_cache(maxsize=512)
def _text_machine(pattern: str) -> _Machine:
    return _Machine(tuple(_ANY if char == "*" else char for char in pattern))


@lru_cache(maxsize=512)
def _glob_machines(pattern: str, braces: bool) -> tuple[_Machine, ...]:
    return tuple(_Machine(_glob(one)) for one in (expand_braces(pattern) if braces else [pattern]))


def expand_braces(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for, the leftmost braces first."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        one = todo.pop()
        parts = _first_braces(one)
        if parts is None:
            done.append(one)
        else:
            before, options, after = parts
            todo += [before + option + after for option in reversed(options)]
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise InputError(
                f"the pattern stands for more than {_MAX_ALTERNATIVES} others",
                f"pattern {pattern[:80]!r}",
                "use fewer alternatives in braces",
            )
    return done


def _first_braces(pattern: str) -> tuple[str, list[str], str] | None:
    start = pattern.find("{")
    while start >= 0:
        depth, cuts = 0, [start]
        for index in range(start, len(pattern)):
            char = pattern[index]
            depth += (char == "{") - (char == "}")
            if char == "," and depth == 1:
                cuts.append(index)
            if depth == 0:
                if len(cuts) == 1:  # braces around a single word are plain characters
                    break
                ends = [*cuts[1:], index]
                options = [pattern[a + 1 : b] for a, b in zip(cuts, ends, strict=True)]
                return pattern[:start], options, pattern[index + 1 :]
        start = pattern.find("{", start + 1)
    return None


def _glob(pattern: str) -> tuple[object, ...]:
    steps: list[object] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if pattern.startswith("**", index):
            starts_segment = index == 0 or pattern[index - 1] == "/"
            while index < len(pattern) and pattern[index] == "*":
                index += 1
            if starts_segment and pattern.startswith("/", index):
                steps.append(_FOLDERS)
                index += 1
            else:
                steps.append(_ANY)
            continue
        if char == "*":
            steps.append(_SEGMENT)
        elif char == "?":
            steps.append(_ONE)
        elif char == "[" and (end := pattern.find("]", index + 2)) > 0:
            steps.append(_bracket(pattern[index + 1 : end]))
            index = end
        elif char == "\\" and index + 1 < len(pattern):
            index += 1
            steps.append(pattern[index])
        else:
            steps.append(char)
        index += 1
    return tuple(steps)


def _bracket(body: str) -> _Class:
    negated = body[0] in "!^" and len(body) > 1
    body = body[1:] if negated else body
    ranges: list[tuple[str, str]] = []
    index = 0
    while index < len(body):
        if index + 2 < len(body) and body[index + 1] == "-":
            ranges.append((body[index], body[index + 2]))
            index += 3
        else:
            ranges.append((body[index], body[index]))
            index += 1
    return _Class(tuple(ranges), negated)


class _Machine:
    """A pattern as an automaton that is built while it is used.

    A state is the set of all positions in the pattern at once, so that no text makes it try again; a step that was
    taken before is a look-up.
    """

    def __init__(self, steps: tuple[object, ...]) -> None:
        self._steps = steps
        self._start = frozenset(_closure({0}, steps, at_segment=True))
        self._table: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def takes(self, text: str) -> bool:
        """Whether the whole text matches."""
        state, table = self._start, self._table
        for char in text:
            after = table.get((state, char))
            if after is None:
                after = self._step(state, char)
            if not after:
                return False
            state = after
        return len(self._steps) in state

    def _step(self, state: frozenset[int], char: str) -> frozenset[int]:
        steps = self._steps
        after: set[int] = set()
        for place in state:
            if place == len(steps):
                continue
            step = steps[place]
            if step is _ANY or step is _FOLDERS or (step is _SEGMENT and char != "/"):
                after.add(place)
            elif (step is _ONE and char != "/") or (isinstance(step, _Class) and step.holds(char)) or step == char:
                after.add(place + 1)
        result = frozenset(_closure(after, steps, at_segment=char == "/"))
        if len(self._table) >= _MAX_TABLE:
            self._table.clear()
        self._table[state, char] = result
        return result


def _closure(places: set[int], steps: tuple[object, ...], *, at_segment: bool) -> set[int]:
    todo = list(places)
    while todo:
        place = todo.pop()
        if place < len(steps):
            step = steps[place]
            # Whole folders end only where a segment begins.
            skips = step is _ANY or step is _SEGMENT or (step is _FOLDERS and at_segment)
            if skips and place + 1 not in places:
                places.add(place + 1)
                todo.append(place + 1)
    return places
