"""Whole responses: a text, token ids, or a batch of either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dovetail.errors import InputError
from dovetail.response_templates.parser import ResponseParser
from dovetail.response_templates.template import ResponseTemplate
from dovetail.response_templates.tools import Tool
from dovetail.typing import Decoder, TokenIds

Template = Mapping[str, Any] | str | ResponseTemplate
Response = str | TokenIds | Sequence[str] | Sequence[TokenIds]  # one or a batch; tensors of ids do as well


def parse_response(
    response: Response,
    template: Template | None = None,
    *,
    prefix: Response | None = None,
    tools: Sequence[Tool] | None = None,
    tokenizer: Decoder | None = None,
    on_malformed: Literal["raise", "keep"] = "raise",
) -> Any:
    """The message of a response, or the list of messages of a batch.

    A response and a prefix are texts, sequences of token ids (with `tokenizer`) or lists of these; one prefix serves a
    whole batch. Without `template` the tokenizer's own is taken.
    """
    loaded = _template(template, tokenizer)
    texts, batched = _texts(response, tokenizer, "/response")
    if prefix is None:
        prefixes: list[Any] = [None]
        several = False
    elif not isinstance(prefix, str) and len(prefix) == 0:
        prefixes, several = [""], False
    else:
        prefixes, several = _texts(prefix, tokenizer, "/prefix")
    if not several:
        prefixes = prefixes * len(texts)
    if len(prefixes) != len(texts):
        raise InputError(
            f"there are {len(texts)} responses and {len(prefixes)} prefixes", "/prefix", "pass one, or one per response"
        )
    messages = []
    for text, start in zip(texts, prefixes, strict=True):
        parser = ResponseParser(loaded, start, tools=tools, on_malformed=on_malformed)
        messages.append(parser.finalize(text)[0])
    return messages if batched else messages[0]


def get_response_parser(
    tokenizer: object,
    template: Template | None = None,
    *,
    prefix: str | TokenIds | None = None,
    tools: Sequence[Tool] | None = None,
    on_malformed: Literal["raise", "keep"] = "raise",
    spans: bool = False,
) -> ResponseParser:
    """A streaming parser with the response template of `tokenizer`; the prefix is a text or token ids."""
    loaded = _template(template, tokenizer)
    if prefix is not None and not isinstance(prefix, str):
        texts, several = _texts(prefix, tokenizer, "/prefix") if len(prefix) else ([""], False)
        if several:
            raise InputError("a parser reads one response, and the prefix is a batch", "/prefix", "pass one prompt")
        prefix = texts[0]
    return ResponseParser(loaded, prefix, tools=tools, on_malformed=on_malformed, spans=spans)


def _template(template: Template | None, tokenizer: object) -> ResponseTemplate:
    if template is not None:
        return ResponseTemplate.load(template, strict=False)
    if tokenizer is None:
        raise InputError("there is neither a template nor a tokenizer", "/template", "pass one of them")
    return ResponseTemplate.of_tokenizer(tokenizer)


def _texts(value: Any, tokenizer: Any, path: str) -> tuple[list[str], bool]:
    """The texts in `value`, and whether it is a batch."""
    if isinstance(value, str):
        return [value], False
    if isinstance(value, list | tuple) and (not value or isinstance(value[0], str)):
        return list(value), True
    if tokenizer is None:
        raise InputError("token ids are read with their tokenizer", path, "pass tokenizer=, or decode them first")
    decoded = tokenizer.decode(value)
    return ([decoded], False) if isinstance(decoded, str) else (list(decoded), True)
