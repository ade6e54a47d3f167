"""Draw how the mask narrows while one value is written: which tokens it allows before each step.

    python docs/img/draw_mask.py        writes docs/img/mask.svg

The tokens are those of the embedded speaker, and the rows are its real masks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from drawing import BLUE, GREY, INK, LINE, PAPER, SANS, box, picture, text, visible, write

import dovetail as dt
from dovetail.models import Speaker

SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["happy", "angry", "unsure"]}, "stars": {"enum": [1, 2, 3, 4, 5]}},
    "required": ["mood", "stars"],
}
FORMAT = {
    "type": "sequence",
    "elements": [
        {"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": "\n"},
        {"type": "json_schema", "json_schema": SCHEMA, "max_whitespace_cnt": 1},
    ],
}
OUTPUT = 'because\n{"mood": "angry", "stars": 2}'
WIDTH, LEFT, ROW, LETTER = 960, 28, 36, 8.4
CHIPS = 400  # where the allowed tokens begin


class Step(NamedTuple):
    """What was written before, the tokens that were taken, and what the mask allowed for the first of them."""

    before: str
    taken: str
    allowed: list[str]


def steps() -> tuple[list[Step], int]:
    """The steps of the output, with those in one that left no choice; and the size of the vocabulary."""
    speaker = Speaker(dialect="qwen_3")
    matcher = dt.compile(FORMAT, speaker.vocabulary).matcher()
    mask, found, before = np.zeros(speaker.vocabulary.mask_words, dtype=np.int32), list[Step](), ""
    for token in [*speaker.encode(OUTPUT), speaker.vocabulary.stop_token_ids[0]]:
        matcher.fill_mask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=speaker.vocabulary.size)
        allowed = [name(speaker, one) for one in np.flatnonzero(bits)]
        taken = name(speaker, token)
        if not matcher.accept(token):
            raise AssertionError(f"the format does not allow {taken!r}")
        if len(allowed) == 1 and found and len(found[-1].allowed) == 1:
            found[-1] = found[-1]._replace(taken=found[-1].taken + taken)
        else:
            found.append(Step(before, taken, allowed))
        before += taken
    return found, speaker.vocabulary.size


def name(speaker: Speaker, token: int) -> str:
    """What is written where the token is shown."""
    if token in speaker.vocabulary.stop_token_ids:
        return "(end)"
    return visible(speaker.tokens[token].decode("utf-8", "replace"))


def draw_step(step: Step, size: int, y: float) -> list[str]:
    """One row: what was written, how many tokens are allowed, and which."""
    shown = step.before if len(step.before) < 27 else "…" + step.before[-26:]
    count = len(step.allowed)
    length = max(3, 60 * math.log(count + 1) / math.log(size))
    drawn = [
        text(LEFT, y, shown, GREY),
        box(LEFT + 262, y - 13, length, 16, f'rx="2" fill="{BLUE}" opacity="0.3"'),
        text(LEFT + 330, y, f"{count}", INK),
    ]
    if count == 1:
        return [*drawn, *chip(CHIPS, y, step.taken, True)]
    x: float = CHIPS
    # The one that is taken, and as many of the others as there is room for; the longest tell most.
    others = sorted(set(step.allowed) - {step.taken}, key=lambda one: (-len(one), one))
    for shown in [step.taken, *others]:
        width = LETTER * len(shown) + 14
        if x + width > WIDTH - LEFT - 24:
            drawn.append(text(x + 2, y, "…", GREY))
            break
        drawn += chip(x, y, shown, shown == step.taken)
        x += width + 6
    return drawn


def chip(x: float, y: float, words: str, taken: bool) -> list[str]:
    """A token in a box; the one that is taken is filled."""
    colors = f'fill="{BLUE}"' if taken else f'fill="{PAPER}" stroke="{LINE}"'
    width = LETTER * len(words)
    fit = f' font-size="14" textLength="{width:g}" lengthAdjust="spacingAndGlyphs"'
    letters = text(x + 7, y, words.replace(" ", "·"), "#ffffff" if taken else INK, fit)
    return [box(x, y - 16, width + 14, 22, f'rx="4" {colors}'), letters]


def draw() -> dict[str, str]:
    """The picture, by the name of its file."""
    found, size = steps()
    head = [
        text(LEFT, 34, "written so far", GREY, SANS),
        text(LEFT + 262, 34, f"allowed of {size}", GREY, SANS),
        text(CHIPS, 34, "which ones; the dark one is taken", GREY, SANS),
    ]
    rows = [part for i, step in enumerate(found) for part in draw_step(step, size, 70 + ROW * i)]
    label = "How the mask narrows: the tokens that are allowed before each step of a text and a JSON value"
    return {"mask.svg": picture(WIDTH, 70 + ROW * len(found), label, [*head, *rows])}


if __name__ == "__main__":
    write(draw())
