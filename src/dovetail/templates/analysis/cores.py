"""Calls in a render: what stands around them and between them, and the number that may count them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dovetail.parsing.layouts import ARGUMENTS, ID, NAME, Field
from dovetail.templates.analysis.probes import IDS, KEYS, NAMES, VALUES, Call
from dovetail.templates.analysis.spelling import find_spelling

FIRST = Call(NAMES[0], {KEYS[0]: VALUES[0], KEYS[1]: VALUES[1]}, IDS[0])
SECOND = Call(NAMES[1], {KEYS[0]: VALUES[2], KEYS[1]: VALUES[3]}, IDS[1])
ARGS, INDEX = "\ue001", "\ue002"  # stand for the arguments of a call, and for its number among the calls

Parts = tuple[str | Field, ...]


@dataclass(frozen=True, slots=True)
class Cores:
    """A render with one call or two, cut up.

    The core of a call runs from the first thing to the last thing that it says. A number that counts the calls is
    replaced by a mark; `first_index` is the first one.
    """

    before: str
    core: str  # of the first call
    between: str | None  # None where there is no second call
    after: str
    first_index: int = 0

    @property
    def parts(self) -> Parts:
        """The core as text and fields; arguments that are not JSON stand as the text that they are."""
        fields = {NAMES[0]: NAME, IDS[0]: ID, INDEX: ID, ARGS: ARGUMENTS}
        pattern = "|".join(map(re.escape, fields))
        return tuple(fields.get(piece, piece) for piece in re.split(f"({pattern})", self.core) if piece)


def marked(text: str) -> str:
    """A text with the arguments of its calls replaced by a mark, where they are spelled as one value."""
    for call in (FIRST, SECOND):
        spelling = find_spelling(text, dict(call.arguments))
        if spelling:
            text = text[: spelling[0]] + ARGS + text[spelling[1] :]
    return text


def cut(text: str) -> Cores:
    """A render cut up into what the calls say and what stands around them."""
    second = [at for at in (text.find(SECOND.name), text.find(SECOND.id)) if at >= 0]
    border = min(second, default=len(text))
    start, end = _span(text, FIRST, 0, border)
    if SECOND.name not in text:
        return Cores(text[:start], text[start:end], None, text[end:])
    again, last = _span(text, SECOND, end, len(text))
    cores = Cores(text[:start], text[start:end], text[end:again], text[last:])
    return _indexed(cores, text[again:last])


def _span(text: str, call: Call, floor: int, ceiling: int) -> tuple[int, int]:
    """Where the things that a call says begin and end."""
    words = "|".join(map(re.escape, (call.name, call.id, *call.arguments.values())))
    inside = [match.span() for match in re.finditer(words, text) if floor <= match.start() < ceiling]
    marks = [match.span() for match in re.finditer(ARGS, text) if floor <= match.start()]
    inside += marks[:1]
    return min(start for start, _ in inside), max(end for _, end in inside)


def _indexed(cores: Cores, second: str) -> Cores:
    """The cores with the number of the call marked, where the two calls differ in one that goes up by one."""
    assert cores.between is not None
    before, between, number = _counted(cores.before, cores.between)
    if number is not None:
        return replace(cores, before=before, between=between, first_index=number)
    left, right = cores.core.partition(NAMES[0])[2], second.partition(NAMES[1])[2]
    for one, other in zip(re.finditer(r"\d+", left), re.finditer(r"\d+", right), strict=False):
        same = left[: one.start()].replace(VALUES[0], VALUES[2]) == right[: other.start()]
        if same and int(other[0]) == int(one[0]) + 1:
            at = len(cores.core) - len(left) + one.start()
            core = cores.core[:at] + INDEX + cores.core[at + len(one[0]) :]
            return replace(cores, core=core, first_index=int(one[0]))
    return cores


def _counted(before: str, between: str) -> tuple[str, str, int | None]:
    """Both texts with the number that counts the calls marked, where their ends differ in nothing else."""
    i, j = len(before), len(between)
    while i and j:
        if before[i - 1] == between[j - 1]:
            i, j = i - 1, j - 1
            continue
        left, right = re.search(r"\d+\Z", before[:i]), re.search(r"\d+\Z", between[:j])
        if left and right and int(right[0]) == int(left[0]) + 1:
            marked_left = before[: left.start()] + INDEX + before[i:]
            return marked_left, between[: right.start()] + INDEX + between[j:], int(left[0])
        break
    return before, between, None


def with_index(text: str, begin: str) -> str:
    """A text that ends with the beginning of a first call, with the mark that `begin` has for its number."""
    if INDEX not in begin:
        return text
    match = re.search(re.escape(begin).replace(INDEX, r"\d+") + r"\Z", text)
    return text[: match.start()] + begin if match else text
