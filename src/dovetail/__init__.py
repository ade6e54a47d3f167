"""Structured output for language models.

structural tag, JSON Schema, regex, EBNF --formats--> Format --grammar--> rules over bytes and tokens
tokenizer --engine--> Vocabulary
rules + Vocabulary --compile--> CompiledGrammar --matcher()--> Matcher

each step: Matcher --fill_mask--> bits over the vocabulary --> sampler --> token --accept--> Matcher --> events
"""

from dovetail import formats
from dovetail.engine import CompiledGrammar, Event, Matcher, Vocabulary, accepts, compile, fill_masks
from dovetail.errors import (
    DovetailError,
    ExportError,
    FormatError,
    GrammarError,
    InputError,
    LimitError,
    MatcherError,
    ResponseError,
    ResponseTemplateError,
    SchemaError,
    VocabularyError,
)
from dovetail.formats import StructuralTag, load_format
from dovetail.response_templates import ResponseParser, ResponseTemplate, get_response_parser, parse_response

__version__ = "0.1.0"

__all__ = [
    "CompiledGrammar",
    "DovetailError",
    "Event",
    "ExportError",
    "FormatError",
    "GrammarError",
    "InputError",
    "LimitError",
    "Matcher",
    "MatcherError",
    "ResponseError",
    "ResponseParser",
    "ResponseTemplate",
    "ResponseTemplateError",
    "SchemaError",
    "StructuralTag",
    "Vocabulary",
    "VocabularyError",
    "accepts",
    "compile",
    "fill_masks",
    "formats",
    "get_response_parser",
    "load_format",
    "parse_response",
]
