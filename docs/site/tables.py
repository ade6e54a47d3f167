"""A hook of MkDocs: code in tables may hold `\\|`, as GitHub wants it; Python-Markdown would show the backslash."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with the bars of code in tables as they are meant."""
    return "\n".join(
        re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in markdown.split("\n")
    )
