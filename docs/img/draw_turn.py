"""Draw one turn of a model: what the mask allows before each token, and what the parser makes of the output.

    python docs/img/draw_turn.py        writes docs/img/turn.svg

Nothing in the picture is drawn by hand: the bars are counts of real masks, the colors are events of the parser.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from drawing import BLUE, BROWN, GREY, INK, LINE, PAPER, PURPLE, SANS, box, picture, text, visible, write

import dovetail as dt
from dovetail.models import Speaker

TURN = """<think>
They ask for Oslo.
</think>

One moment.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}
</tool_call>"""
CITY = {"enum": ["Lisbon", "Oslo", "Quito"]}
PARAMETERS = {"type": "object", "properties": {"city": CITY, "days": {"type": "integer"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
COLOURS = {"": BROWN, "reasoning": PURPLE, "content": INK, "tool_call": BLUE}
STEP, BAR, ROW, LEFT, WIDTH = 9.0, 16, 42, 28, 960
BOX = (384, 74, 548, 138)  # the message: left, top, width, height


class Piece(NamedTuple):
    """The text of a token, its region, and how many tokens the mask allowed there."""

    text: str
    region: str
    allowed: int


def pieces() -> tuple[list[Piece], int, dt.Message]:
    """The tokens of the turn, the size of the vocabulary, and the message that is read."""
    speaker = Speaker(dialect="qwen_3")
    matcher = dt.compile(speaker.dialect.format(TOOLS, reasoning=True), speaker.vocabulary).matcher()
    parser = speaker.dialect.parser(TOOLS, prompt="")
    regions = [event for event in [*parser.feed(TURN), *parser.close()] if event.end > event.start]
    mask, found, at = np.zeros(speaker.vocabulary.mask_words, dtype=np.int32), list[Piece](), 0
    for token in speaker.encode(TURN):
        matcher.fill_mask(mask)
        text = speaker.tokens[token].decode()
        region = next(event.region for event in regions if event.start <= at < event.end)
        found.append(Piece(text, region, int(np.unpackbits(mask.view(np.uint8)).sum())))
        if not matcher.accept(token):
            raise AssertionError(f"the format does not allow {text!r}")
        at += len(text.encode())
    return found, speaker.vocabulary.size, parser.message


def draw_output(found: list[Piece], size: int, top: float) -> tuple[list[str], float]:
    """The output, line by line, with a bar above each token; and where it ends."""
    drawn, x, y = list[str](), float(LEFT), top
    for index, piece in enumerate(found):
        width = STEP * len(piece.text)
        height = max(1.5, BAR * math.log(piece.allowed) / math.log(size))
        color = COLOURS[piece.region]
        top = round(y - 15 - height, 1)
        drawn.append(box(x + 0.75, top, width - 1.5, round(height, 1), f'rx="1" fill="{color}" opacity="0.3"'))
        drawn.append(text(x, y, visible(piece.text), color, f' textLength="{width:g}" lengthAdjust="spacingAndGlyphs"'))
        x += width
        # An empty line needs no row of its own.
        if "\n" in piece.text and found[index + 1].text != "\n":
            x, y = float(LEFT), y + ROW
    return drawn, y


def draw_message(message: dt.Message) -> list[str]:
    """The parts of the message, each in the color of its region, beside the short lines of the output."""
    (left, top, width, height), call = BOX, message.tool_calls[0]
    rows = [
        ("reasoning", message.reasoning, "reasoning"),
        ("content", message.content, "content"),
        ("call", f"{call.name} {call.arguments}", "tool_call"),
    ]
    drawn = [
        box(left, top, width, height, f'rx="6" fill="{PAPER}" stroke="{LINE}"'),
        text(left + 16, top + 28, "The message, read by the same dialect while the output streams", GREY, SANS),
    ]
    for i, (name, value, region) in enumerate(rows):
        drawn.append(text(left + 16, top + 62 + 28 * i, name, GREY))
        drawn.append(text(left + 112, top + 62 + 28 * i, value, COLOURS[region]))
    return drawn


def draw() -> dict[str, str]:
    """The picture, by the name of its file."""
    found, size, message = pieces()
    title = f"What the model writes. Above each token: how many of {size} tokens the mask left it to choose from."
    output, end = draw_output(found, size, 86)
    label = "One turn of a model, with the width of the mask above each token, and the message read from it"
    drawn = [text(LEFT, 34, title, GREY, SANS), *output, *draw_message(message)]
    return {"turn.svg": picture(WIDTH, end + 24, label, drawn)}


if __name__ == "__main__":
    write(draw())
