"""The dialect of a chat template, wherever models keep it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dovetail.dialects import Dialect
from dovetail.dialects.format_builder import call_pieces
from dovetail.layouts.styles import Layout, Literals
from dovetail.parsing.layouts import Quoted, TaggedCall

if TYPE_CHECKING:
    from dovetail.templates.analysis.evidence import Analysis
    from dovetail.typing import TemplateSource


def analyze(source: TemplateSource, bos_token: str = "", eos_token: str = "") -> Dialect:
    """The dialect that a chat template shows, by comparing what it renders.

    The source is the template itself, a tokenizer, the folder or file where one is kept, or a GGUF model. The same
    template is analyzed once.
    """
    return analysis_of(source, bos_token, eos_token).dialect


def analysis_of(source: TemplateSource, bos_token: str = "", eos_token: str = "") -> Analysis:
    """All that the analysis of a chat template says, with its evidence."""
    # Imported late, because jinja2 takes longer to import than everything else together.
    from dovetail.templates.analysis import analyze_template
    from dovetail.templates.sources import find_template

    template = find_template(source)
    analysis = analyze_template(template.text, bos_token or template.bos_token, eos_token or template.eos_token)
    tokens = _special_tokens(source)
    if not tokens or analysis.dialect.special_tokens:
        return analysis
    markup = "".join(marks(analysis.dialect))
    special = tuple(token for token in tokens if token in markup)
    return replace(analysis, dialect=replace(analysis.dialect, special_tokens=special))


def marks(dialect: Dialect) -> list[str]:
    """Every literal that a dialect writes."""
    turn, content, reasoning = dialect.turn, dialect.content, dialect.reasoning
    marks = [turn.start, turn.end, turn.between, turn.closing, *turn.other_ends]
    marks += [*content.begins, *content.ends, *content.notes]
    marks += [reasoning.start, reasoning.end] if reasoning else []
    for way in dialect.calls:
        marks += [way.begin, way.call_begin, way.separator, way.call_end, way.end]
        marks += [piece for piece in call_pieces(way.call) if isinstance(piece, str)]
        style = way.call.arguments if isinstance(way.call, TaggedCall) else "json"
        if isinstance(style, Layout):
            marks += [style.begin, *(part for middle in style.middle.values() for part in middle), style.stop]
        elif isinstance(style, Literals):
            marks += style.quotes
        elif isinstance(style, Quoted):
            marks.append(style.quote)
    return list(dict.fromkeys(text for text in marks if text.strip()))


def _special_tokens(source: TemplateSource) -> list[str]:
    """The special tokens of a tokenizer or its folder; a template alone does not say which of its markers are some."""
    if isinstance(source, str | os.PathLike):
        return _configured_tokens(source)
    decoder = getattr(getattr(source, "tokenizer", source), "added_tokens_decoder", None)
    added: Iterable[Any] = decoder.values() if isinstance(decoder, dict) else ()
    return [str(token.content) for token in added if getattr(token, "special", False) and getattr(token, "content", "")]


def _configured_tokens(source: str | os.PathLike[str]) -> list[str]:
    from dovetail.templates.sources import tokenizer_config

    added = tokenizer_config(source).get("added_tokens_decoder")
    rows = added.values() if isinstance(added, dict) else ()
    return [row["content"] for row in rows if isinstance(row, dict) and row.get("special") and row.get("content")]
