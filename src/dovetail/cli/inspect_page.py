"""The analysis of a chat template as a web page: one turn, each finding with the renders that show it, each proof."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from os.path import commonprefix
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment

from dovetail.cli.shapes import visible
from dovetail.templates.analysis import Analysis, Evidence
from dovetail.templates.picture import regions
from dovetail.templates.sources import TemplateSource

_YES_NO = ("tools", "parallel_calls", "tool_role", "call_ids", "content_with_calls", "system_role", "typed_content")
_CONTEXT = 200  # characters shown before and after what was found
_PAGE = Path(__file__).with_name("inspect_page.html.jinja")


class Piece(NamedTuple):
    """A part of a render: what both renders have, what one of them has alone, or what was found in that."""

    kind: str
    text: str


def page(source: TemplateSource, analysis: Analysis) -> str:
    """The page, which needs nothing beside itself. Whatever the template wrote is text in it."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = visible
    return environment.from_string(_PAGE.read_text(encoding="utf-8")).render(
        origin=source.origin,
        summary=summary(analysis),
        turn=regions(source, analysis),
        findings=[(finding, renders(finding.evidence)) for finding in analysis.findings],
        verifications=analysis.verifications,
        notes=analysis.notes,
    )


def summary(analysis: Analysis) -> list[tuple[str, str]]:
    """What kind of template it is, as rows of a table."""
    able, modes = analysis.capabilities, analysis.modes
    kin = f"{analysis.same_as}, a built-in dialect" if analysis.same_as else "none of the built-in ones"
    carried = [name.replace("_", " ") for name in _YES_NO if getattr(able, name)]
    return [
        ("dialect", kin),
        ("reasoning", modes.reasoning + (f", switched by {able.thinking_switch}" if able.thinking_switch else "")),
        ("content", modes.content),
        ("calls", _calls(analysis)),
        ("call ids", modes.call_id),
        ("carries", ", ".join(carried) or "content only"),
    ]


def _calls(analysis: Analysis) -> str:
    able, mode = analysis.capabilities, analysis.modes.tools
    if analysis.tools_in_prompt and mode == "NONE":
        return f"{mode}; tools are told in the system prompt, and calls are written as hermes writes them"
    return mode + (f", arguments passed as {able.arguments}" if able.tool_calls else "")


def renders(evidence: Evidence) -> list[tuple[str, list[Piece]]]:
    """The renders without and with what was varied, each in pieces."""
    start = len(commonprefix([evidence.left, evidence.right])) if evidence.left else 0
    ends = (text[start:][::-1] for text in (evidence.left, evidence.right))
    end = len(commonprefix(list(ends))) if evidence.left else 0
    pieces = [("with", list(_pieces(evidence.right, start, end, evidence.spans)))] if evidence.right else []
    if evidence.left:
        pieces.insert(0, ("without", list(_pieces(evidence.left, start, end, ()))))
    return pieces


def _pieces(text: str, same: int, same_end: int, spans: tuple[tuple[int, int], ...]) -> Iterator[Piece]:
    """A render cut where it begins and ends to differ, and where something was found; far from both it is left out."""
    differs, agrees = same, len(text) - same_end
    cuts = sorted({0, len(text), differs, agrees, *(place for span in spans for place in span)})
    for left, right in pairwise(cuts):
        piece = text[left:right]
        if any(left >= start and right <= end for start, end in spans):
            yield Piece("finding", piece)
        elif differs <= left and right <= agrees:
            yield Piece("differs", _shortened(piece, False, False))
        else:
            yield Piece("same", _shortened(piece, left == 0, right == len(text)))


def _shortened(text: str, first: bool, last: bool) -> str:
    """The end of a first piece, the beginning of a last one, both of one between."""
    if len(text) <= 2 * _CONTEXT:
        return text
    before, after = "" if first else text[:_CONTEXT], "" if last else text[-_CONTEXT:]
    return f"{before} … {after}"
