"""The chat templates in wheels that the tests have anyway: those of Transformers, and all that mistral-common makes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_EFFORTS = {"reasoning_effort_values": ("none", "high"), "reasoning_effort_default": "none"}


def templates() -> dict[str, str]:
    """Templates by a name that says where they are from."""
    return dict([*_in_transformers(), *_of_mistral()])


def _in_transformers() -> Iterator[tuple[str, str]]:
    """The texts in the models of Transformers that loop over messages and write roles."""
    spec = find_spec("transformers")
    assert spec is not None
    assert spec.origin is not None
    for path in sorted((Path(spec.origin).parent / "models").rglob("processing_*.py")):
        source = path.read_text()
        if "{%" in source and "messages" in source:
            texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
            chats = [text for text in texts if isinstance(text, str) and "{%" in text and "in messages" in text]
            yield from ((f"{path.parent.name}-{number}", text) for number, text in enumerate(chats))


def _of_mistral() -> Iterator[tuple[str, str]]:
    """Each kind of template that the generator of mistral-common takes."""
    from mistral_common.integrations.chat_templates.chat_templates import generate_chat_template
    from mistral_common.tokens.tokenizers.base import TokenizerVersion

    flags = ("spm", "image_support", "audio_support", "thinking_support", "plain_thinking_support")
    for version, *chosen in itertools.product(TokenizerVersion, *([(False, True)] * len(flags))):
        known = dict.fromkeys(("reasoning_effort_values", "reasoning_effort_default")) | (
            _EFFORTS if version >= TokenizerVersion("v15") else {}
        )
        options = dict(zip(flags, chosen, strict=True)) | known
        try:
            made = generate_chat_template(
                tokenizer_version=version,
                default_system_prompt=None,
                use_special_token_variables=True,
                model_settings_fields=None,
                **options,
            )
        except ValueError:
            continue  # this version knows no such thing
        name = "-".join([version.value, *(flag.removesuffix("_support") for flag in flags if options[flag])])
        yield f"mistral-{name}", made
