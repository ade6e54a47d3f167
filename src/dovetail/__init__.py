"""Structured output for language models.

structural tag, JSON Schema, regex, EBNF --formats--> Format --grammar--> rules over bytes and tokens
tokenizer --engine--> Vocabulary
model family + request --dialects--> Format
rules + Vocabulary --compile--> CompiledGrammar --matcher()--> Matcher

each step: Matcher --fill_mask--> bits over the vocabulary --> sampler --> token --accept--> Matcher --> events
each chunk: text --StreamParser--> events --> Message
prompt + schema + tools --run--> a model works through the tools --> a value that fits the schema
"""

from dovetail import dialects, formats
from dovetail.agent.api import RunError, RunOptions, RunResult, run, run_async, run_events
from dovetail.dialects import Dialect, UnprovenWarning
from dovetail.dialects.registry import (
    get_builtin_structural_tag,
    get_model_structural_tag,
    register_model_structural_tag,
)
from dovetail.engine import CaptureEvent, CompiledGrammar, Matcher, Vocabulary, accepts, compile, fill_masks
from dovetail.errors import (
    DialectError,
    DovetailError,
    ExportError,
    FormatError,
    GrammarError,
    InputError,
    LimitError,
    MatcherError,
    MessageError,
    ModelError,
    ParseError,
    ResponseError,
    ResponseTemplateError,
    SchemaError,
    TemplateError,
    VocabularyError,
)
from dovetail.formats import StructuralTag, load_format
from dovetail.grammar.json_schema import Finding, SchemaReport, explain_schema
from dovetail.messages import Diagnostic, Message, ToolCall
from dovetail.parsing import Event, StreamParser
from dovetail.response_templates import ResponseParser, ResponseTemplate, get_response_parser, parse_response
from dovetail.response_templates.detect import Detection, detect
from dovetail.templates import check
from dovetail.templates.analyze import analyze

__version__ = "0.1.0"

__all__ = [
    "CaptureEvent",
    "CompiledGrammar",
    "Detection",
    "Diagnostic",
    "Dialect",
    "DialectError",
    "DovetailError",
    "Event",
    "ExportError",
    "Finding",
    "FormatError",
    "GrammarError",
    "InputError",
    "LimitError",
    "Matcher",
    "MatcherError",
    "Message",
    "MessageError",
    "ModelError",
    "ParseError",
    "ResponseError",
    "ResponseParser",
    "ResponseTemplate",
    "ResponseTemplateError",
    "RunError",
    "RunOptions",
    "RunResult",
    "SchemaError",
    "SchemaReport",
    "StreamParser",
    "StructuralTag",
    "TemplateError",
    "ToolCall",
    "UnprovenWarning",
    "Vocabulary",
    "VocabularyError",
    "accepts",
    "analyze",
    "check",
    "compile",
    "detect",
    "dialects",
    "explain_schema",
    "fill_masks",
    "formats",
    "get_builtin_structural_tag",
    "get_model_structural_tag",
    "get_response_parser",
    "load_format",
    "parse_response",
    "register_model_structural_tag",
    "run",
    "run_async",
    "run_events",
]
