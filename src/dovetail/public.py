"""The public names, which `dovetail` loads when the first of them is asked for."""

from dovetail import dialects, formats
from dovetail.agent.api import RunError, RunOptions, RunResult, run, run_async, run_events
from dovetail.dialects import Dialect, UnprovenWarning
from dovetail.dialects.registry import (
    get_builtin_structural_tag,
    get_model_structural_tag,
    register_model_structural_tag,
)
from dovetail.engine import CompiledGrammar, Event, Matcher, Vocabulary, accepts, compile, fill_masks
from dovetail.errors import (
    AnswerError,
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
from dovetail.models.answering import generate, generate_async
from dovetail.models.answers import AnswerStream, AsyncAnswerStream, GenerateOptions
from dovetail.models.conversation import CallResult, FunctionCall, call, call_async
from dovetail.parsing import StreamParser
from dovetail.response_templates import ResponseParser, ResponseTemplate, get_response_parser, parse_response
from dovetail.response_templates.detect import Detection, detect
from dovetail.templates import check
from dovetail.templates.analyze import analyze

__all__ = [
    "AnswerError",
    "AnswerStream",
    "AsyncAnswerStream",
    "CallResult",
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
    "FunctionCall",
    "GenerateOptions",
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
    "call",
    "call_async",
    "check",
    "compile",
    "detect",
    "dialects",
    "explain_schema",
    "fill_masks",
    "formats",
    "generate",
    "generate_async",
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
