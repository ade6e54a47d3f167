"""Draw the automaton of a small schema, learned from a matcher by asking it which bytes may follow.

    python docs/img/draw_automaton.py        writes docs/img/automaton.svg

Two outputs have come to the same state where the same may follow. Learning goes on until no way through the states
tells two outputs of one state apart. What can only be written one way is one arrow.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import NamedTuple

import numpy as np
from drawing import BLUE, GREEN, GREY, INK, SANS, picture, text, write

import dovetail as dt

SCHEMA = {
    "type": "object",
    "properties": {
        "mood": {"enum": ["happy", "angry"]},
        "word": {"type": "string", "pattern": "^[a-z]+$"},
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["mood"],
}
END = 256  # the token that ends an output
WIDTH, MIDDLE, LEFT, RADIUS, LETTER = 960, 168, 44, 9, 7.2
SMALL = ' font-size="13" text-anchor="middle"'

Rows = dict[int, dict[int, int]]  # by state and byte: the state that comes next


class Arrow(NamedTuple):
    """What leads from one state to another: the texts of which one is written."""

    start: int
    end: int
    labels: tuple[str, ...]


def answers() -> dt.CompiledGrammar:
    """The grammar of the schema, over a vocabulary of single bytes."""
    vocabulary = dt.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], stop_token_ids=[END])
    return dt.compile({"type": "json_schema", "json_schema": SCHEMA, "max_whitespace_cnt": 0}, vocabulary)


def learn() -> tuple[Rows, set[int]]:
    """The states with their transitions, and those where an output may end."""
    grammar = answers()
    mask = np.zeros(grammar.matcher().mask_words, dtype=np.int32)

    @cache
    def allowed(output: bytes) -> frozenset[int]:
        matcher = grammar.matcher()
        if not matcher.accept_bytes(output):
            return frozenset()
        matcher.fill_mask(mask)
        return frozenset(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little", count=END + 1)).tolist())

    suffixes = [b""]  # outputs are told apart by what may follow after each of these
    while True:
        outputs, rows = [b""], defaultdict[int, dict[int, int]](dict)
        known = {tuple(allowed(suffix) for suffix in suffixes): 0}
        for state, output in enumerate(outputs):
            for byte in sorted(allowed(output) - {END}):
                longer = output + bytes([byte])
                signature = tuple(allowed(longer + suffix) for suffix in suffixes)
                if signature not in known:
                    known[signature] = len(outputs)
                    outputs.append(longer)
                rows[state][byte] = known[signature]
        differs = (
            path
            for state, row in rows.items()
            for byte, target in row.items()
            for path in paths(rows, target)
            if allowed(outputs[state] + bytes([byte]) + path) != allowed(outputs[target] + path)
        )
        suffix = next(differs, None)
        if suffix is None:
            return dict(rows), {state for state, output in enumerate(outputs) if END in allowed(output)}
        suffixes.append(suffix)


def paths(rows: Rows, start: int) -> list[bytes]:
    """A shortest way from a state over each transition that can be reached."""
    found = {start: b""}
    for state in (order := [start]):
        for byte, target in rows.get(state, {}).items():
            if target not in found:
                found[target] = found[state] + bytes([byte])
                order.append(target)
    return [way + bytes([byte]) for state, way in found.items() for byte in rows.get(state, {})]


def arrows(rows: Rows, final: set[int]) -> list[Arrow]:
    """The transitions, with chains in which there is no choice as one."""
    kept = {0, *final, *(state for state, row in rows.items() if len(set(row.values())) > 1)}
    # Where letters lead apart and come together again, the words between them are alternatives.
    found = defaultdict[tuple[int, int], list[str]](list)
    for state in sorted(kept & set(rows)):
        by_target = defaultdict[int, list[int]](list)
        for byte, target in rows[state].items():
            by_target[target].append(byte)
        for target, letters in by_target.items():
            label, place = span(letters), target
            while place not in kept:
                (following,) = set(rows[place].values())
                label, place = label + span(list(rows[place])), following
            found[state, place].append(label)
    return [Arrow(start, end, tuple(labels)) for (start, end), labels in found.items()]


def span(letters: list[int]) -> str:
    """One letter as it is, several as a class."""
    return chr(letters[0]) if len(letters) == 1 else f"[{chr(letters[0])}-{chr(letters[-1])}]"


def places(found: list[Arrow]) -> dict[int, float]:
    """Where each state is drawn: behind all that lead to it, with room for what is written on the way."""
    at = dict.fromkeys((state for arrow in found for state in (arrow.start, arrow.end)), 0.0)
    for _ in at:
        for arrow in found:
            if arrow.start != arrow.end:
                room = 2 * RADIUS + 22 + LETTER * max(map(len, arrow.labels))
                at[arrow.end] = max(at[arrow.end], at[arrow.start] + room)
    order = sorted(at, key=lambda state: at[state])
    scale = (WIDTH - 2 * LEFT) / at[order[-1]]
    return {state: LEFT + scale * at[state] for state in order}


def draw_arrow(arrow: Arrow, at: dict[int, float], above: bool) -> list[str]:
    """An arrow along the line, around one state, or over the states between."""
    start, end = at[arrow.start], at[arrow.end]
    sign = -1 if above else 1
    style = f'fill="none" stroke="{GREY}" stroke-width="1.5" marker-end="url(#head)"'
    top, rim, touch = MIDDLE - 56, MIDDLE - RADIUS, MIDDLE + sign * (RADIUS + 3)
    if start == end:
        path = f"M{start - 6:.0f},{rim} C{start - 26:.0f},{top} {start + 26:.0f},{top} {start + 6:.0f},{rim - 2}"
        return [f'<path d="{path}" {style}/>', text(round(start), top - 2, arrow.labels[0], BLUE, SMALL)]
    between = any(start < x < end for x in at.values())
    middle, rise = (start + end) / 2, 0.1 * (end - start) + 28 if between else 0
    if between:
        path = f"M{start:.0f},{MIDDLE + sign * RADIUS} Q{middle:.0f},{MIDDLE + sign * 2 * rise:.0f} {end:.0f},{touch}"
    else:
        path = f"M{start + RADIUS:.0f},{MIDDLE} L{end - RADIUS - 3:.0f},{MIDDLE}"
    drawn = [f'<path d="{path}" {style}/>']
    for i, label in enumerate(arrow.labels):
        # One alternative above the line, the next below it.
        y = MIDDLE + sign * rise + (sign * 8 if between else (-9, 20)[i % 2]) + (12 if between and not above else 0)
        drawn.append(text(round(middle), round(y), label, BLUE, SMALL))
    return drawn


def draw() -> dict[str, str]:
    """The picture, by the name of its file."""
    rows, final = learn()
    found = arrows(rows, final)
    at = places(found)
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{GREY}"/></marker></defs>'
    )
    title = (
        "Each arrow is text as it stands; [a-z] is one of these letters. An output may end where the ring is double."
    )
    drawn = [head, text(28, 34, title, GREY, SANS)]
    around = [arrow for arrow in found if any(at[arrow.start] < x < at[arrow.end] for x in at.values())]
    for arrow in found:
        drawn += draw_arrow(arrow, at, arrow in around and around.index(arrow) % 2 == 0)
    for state, x in at.items():
        color = GREEN if state in final else INK
        for radius in [RADIUS, RADIUS - 4][: 2 if state in final else 1]:
            ring = f'fill="#ffffff" stroke="{color}" stroke-width="2"'
            drawn.append(f'<circle cx="{x:.0f}" cy="{MIDDLE}" r="{radius}" {ring}/>')
    return {"automaton.svg": picture(WIDTH, 2 * MIDDLE - 20, "The automaton of a small schema", drawn)}


if __name__ == "__main__":
    write(draw())
