"""What the pictures of the docs share: text, frames and colors of SVG. Each picture is drawn by a program beside it.

python docs/img/draw_turn.py        a program draws its pictures again when it is run
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

INK, GREY, LINE, PAPER = "#1f2328", "#6e7781", "#d0d7de", "#f6f8fa"
BLUE, PURPLE, BROWN, GREEN = "#0969da", "#8250df", "#9a6700", "#1a7f37"
SANS = ' font-family="system-ui, sans-serif" font-size="14"'


def text(x: float, y: float, words: str, color: str = INK, more: str = "") -> str:
    """A line of text that keeps its spaces."""
    return f'<text x="{x:g}" y="{y:g}" fill="{color}" xml:space="preserve"{more}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, more: str) -> str:
    """A rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {more}/>'


def picture(width: float, height: float, label: str, drawn: Iterable[str]) -> str:
    """A whole file: on white in a thin frame, in a font whose letters are equally wide."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="15" role="img" '
        f'aria-label="{escape(label)}">'
    )
    frame = box(0.5, 0.5, width - 1, height - 1, f'rx="8" fill="#ffffff" stroke="{LINE}"')
    return "\n".join([head, frame, *drawn, "</svg>", ""])


def visible(words: str) -> str:
    """The text with its line ends shown."""
    return words.replace("\n", "⏎").replace("\t", "⇥").replace("\r", "\\r")


def write(pictures: Mapping[str, str]) -> None:
    """Write the pictures beside their programs."""
    for name, content in pictures.items():
        (Path(__file__).parent / name).write_text(content)
