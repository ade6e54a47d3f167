"""Which dialect a template, a tokenizer, a directory or a GGUF file speaks."""

from __future__ import annotations

from typing import Any

from dovetail.dialects import Dialect


def analyze(source: Any, bos_token: str = "", eos_token: str = "") -> Dialect:
    """The dialect derived from a chat template."""
    from dovetail.templates.analysis import analyse_template

    return analyse_template(source, bos_token, eos_token).dialect
