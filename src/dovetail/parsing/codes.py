"""The codes of diagnostics: what a reader met in an output, and what it made of it."""

from __future__ import annotations

from typing import Literal, get_args

Code = Literal[
    "after_end",
    "arguments",
    "brackets",
    "call",
    "content",
    "cut_off",
    "empty",
    "encoded",
    "encoding",
    "fence",
    "header",
    "outside",
    "parameter",
    "quotes",
    "reasoning",
    "section",
    "style",
    "type",
    "unknown_tool",
]
CODES: tuple[Code, ...] = get_args(Code)
