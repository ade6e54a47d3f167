"""The turn of a local model: prompt, grammar and parser of one request, the same for the server, runs and scripts.

messages, tools, answer --plan_turn--> LocalTurn --steps--> tokens, read by its parser

One rule holds for schemas that no grammar holds exactly: they are held as far as one can, and a note says what is not.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dovetail.dialects import Dialect, Reasoning
from dovetail.dialects.requests import ReasoningMode
from dovetail.engine import compile
from dovetail.errors import FormatError, GrammarError, InputError, LimitError, ModelError, SchemaError
from dovetail.formats import AnyTextFormat, Format, JsonSchemaFormat, load_format
from dovetail.grammar.json_schema import explain_schema
from dovetail.grammar.lower import lower
from dovetail.messages import Wire
from dovetail.models.model import Model, Prompt, RemoteModel, Sampling, Step
from dovetail.models.prompted_tools import NOTE
from dovetail.parsing import StreamParser
from dovetail.typing import ToolChoice

_MODES: tuple[ReasoningMode, ...] = ("auto", "enabled", "disabled")
_ANY_OBJECT = {"type": "object"}
_ANSWER = "/response_format"
_UNBOUNDED = 1 << 30  # tokens; the context of a model is shorter
_WIDENED, _TOOLS_IN_PROMPT = "schema_widened", "tools_in_prompt"
_UNHELD = "not_held_by_engine"


class Note(NamedTuple):
    """What differs from what was asked: a code, the JSON Pointer of what it is about, and a sentence."""

    code: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class LocalTurn:
    """A turn that is ready to be generated; `prompt.prefix` is what the prompt holds of the format already."""

    model: Model
    dialect: Dialect
    prompt: Prompt
    prompt_ids: list[int]
    format: Format
    reasoning: ReasoningMode
    notes: tuple[Note, ...] = ()
    tools: list[Wire] | None = None
    tool_choice: ToolChoice = "auto"
    response_format: Format | None = None

    def parser(self, *, inline_reasoning: bool = False) -> StreamParser:
        """A parser that begins where the prompt ends."""
        return self.dialect.parser(
            self.tools,
            self.prompt.text,
            inline_reasoning=inline_reasoning,
            response_format=self.response_format,
            reasoning=self.reasoning,
        )

    def steps(self, sampling: Sampling) -> AsyncGenerator[Step, None]:
        """The tokens of one answer; a turn may be answered any number of times.

        Without a soft limit the last quarter of `max_tokens` is kept for the way to the end of an answer under a
        format, or of a call. Text beside tools is free, and goes on up to the hard limit.
        """
        held = self.format if self.is_held or not isinstance(self.model, RemoteModel) else None
        return self.model.generate(self.prompt_ids, held, self._led(sampling), prefix=self.prompt.prefix)

    @property
    def is_held(self) -> bool:
        """Whether the format holds more than text and reasoning."""
        return self.response_format is not None or (bool(self.tools) and self.tool_choice != "none")

    def _led(self, sampling: Sampling) -> Sampling:
        if sampling.soft_limit is not None or not self.is_held:
            return sampling
        limit = sampling.max_tokens or _UNBOUNDED
        ends_text = self.response_format is not None or not _leaves_open(self.tool_choice)
        return replace(sampling, soft_limit=max(1, limit * 3 // 4), ends_text=ends_text)


def plan_turn(
    model: Model,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: ToolChoice = "auto",
    parallel_tool_calls: bool = True,
    response_format: Any = None,
    reasoning: ReasoningMode = "auto",
    continue_final: bool = False,
    options: Mapping[str, Any] | None = None,
) -> LocalTurn:
    """The turn that answers `messages`; what is wrong is told by a path such as /tools/0 or /response_format.

    Tools are in the shape of Chat Completions. A tool with `strict: false` may be called with any object where its
    schema is malformed. Where a prompt opens the reasoning, "auto" is "enabled". `options` are variables of the chat
    template.
    """
    listed = None if tools is None else [_listed(tool) for tool in tools]
    answer = _loaded(response_format)
    dialect = model.dialect
    block = dialect.reasoning
    mode: ReasoningMode = "enabled" if reasoning == "auto" and block and block.opened_by == "prompt" else reasoning
    if reasoning == "auto" and not model.shows_reasoning:
        mode = "disabled"
    offered = None if tool_choice == "none" else listed
    prompt = model.render(
        messages,
        offered,
        reasoning=mode != "disabled",
        continue_final=continue_final,
        options=options,
    )
    # What a caller has begun may have white space anywhere.
    tidied = answer if continue_final else _tidy(answer)
    request = _Request(model, dialect, listed, tidied, tool_choice, parallel_tool_calls, not continue_final)
    notes: tuple[Note, ...] = ()
    try:
        made, mode, prefix = request.begun(mode, prompt, continue_final, len(messages))
    except (SchemaError, LimitError, GrammarError, FormatError) as error:
        request, notes = request.widened(error)
        made, mode, prefix = request.begun(mode, prompt, continue_final, len(messages))
    if offered and model.tools_in_prompt:
        notes = (Note(_TOOLS_IN_PROMPT, "/tools", NOTE), *notes)
    turn = LocalTurn(
        model=model,
        dialect=dialect,
        prompt=Prompt(prompt.text, prefix),
        prompt_ids=model.encode(prompt.text),
        format=made,
        reasoning=mode,
        notes=notes,
        tools=listed,
        tool_choice=tool_choice,
        response_format=answer,
    )
    return replace(turn, notes=(*notes, *_unheld(turn)))


def _unheld(turn: LocalTurn) -> list[Note]:
    """What the engine of a model elsewhere does not hold of a turn."""
    if not isinstance(turn.model, RemoteModel) or not turn.is_held:
        return []
    whole = _ANSWER if turn.response_format is not None else "/tools"
    schemas = _schemas(turn.response_format) if turn.response_format is not None else []
    for index, tool in enumerate(turn.tools or ()):
        schemas.append((f"/tools/{index}/function/parameters", tool["function"]["parameters"]))
    notes = []
    for schema, why in turn.model.unheld(turn.format, turn.prompt.prefix):
        path = next((path for path, one in schemas if schema is not None and one == schema), whole)
        notes.append(Note(_UNHELD, path, why))
    return notes


def _tidy(answer: Format | None) -> Format | None:
    """The answer without the white space that only models that are lost write."""
    if isinstance(answer, JsonSchemaFormat) and answer.style == "json" and answer.max_whitespace_cnt is None:
        return answer.model_copy(update={"tidy": True})
    return answer


def _leaves_open(tool_choice: ToolChoice) -> bool:
    """Whether text may take the place of a call."""
    if isinstance(tool_choice, Mapping) and tool_choice.get("type") == "allowed_tools":
        allowed: Any = tool_choice.get("allowed_tools", tool_choice)
        return bool(allowed.get("mode", "auto") == "auto")
    return tool_choice in (None, "auto")


def _loaded(response_format: Any) -> Format | None:
    """The format of the answer, or None where any text will do."""
    if response_format is None:
        return None
    try:
        answer = load_format(response_format)
    except InputError as error:
        raise _under(_ANSWER, error) from None
    return None if answer == AnyTextFormat() else answer


def _listed(tool: Mapping[str, Any]) -> Wire:
    """A tool as templates, formats and parsers take it."""
    function = {"parameters": _ANY_OBJECT, **tool.get("function", tool)}
    return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class _Request:
    """What the format of a turn is made of."""

    model: Model
    dialect: Dialect
    tools: list[Wire] | None
    answer: Format | None
    tool_choice: ToolChoice
    parallel: bool
    is_tidy: bool = True  # whether JSON has white space only where people have it
    is_widened: bool = False

    def format(self, reasoning: ReasoningMode) -> Format:
        """The format of the turn."""
        tools = None if self.tools is None else [_held(tool) for tool in self.tools]
        made = self.dialect.format(
            tools,
            tool_choice=self.tool_choice,
            reasoning=reasoning,
            parallel_tool_calls=self.parallel,
            response_format=self.answer,
            tidy=self.is_tidy,
        ).format
        return _widened(made) if self.is_widened else made

    def begun(
        self, mode: ReasoningMode, prompt: Prompt, continues: bool, count: int
    ) -> tuple[Format, ReasoningMode, str]:
        """The format of the turn, its reasoning, and what of the format the prompt holds already.

        A prompt may decide what the request left open, or asked of a template in vain: whether there is to be a block
        of reasoning, and who opens it.
        """
        asked: tuple[ReasoningMode, ...] = (mode, *(other for other in _MODES if other != mode))
        begun = self.dialect.parser(prompt=prompt.text).begun
        tries = [(mode, prefix) for mode in asked for prefix in _beginnings(self.dialect, mode, begun)]
        for mode, prefix in [*tries, (asked[0], prompt.prefix)]:
            made = self.format(mode)
            if compile(made, self.model.vocabulary).matcher().accept_bytes(prefix):
                return made, mode, prefix
        where = f"/messages/{count - 1}" if continues else "/messages"
        fix = "change the text that is to be continued, or what is asked of the answer"
        raise ModelError("the format of the answer does not allow its beginning in the prompt", where, fix)

    def widened(self, error: InputError) -> tuple[_Request, tuple[Note, ...]]:
        """The request with every schema held as far as a grammar can, and what that leaves out.

        Each schema is tried alone: this costs time, but only where a request would fail.
        """
        notes = self._answer_notes()
        tools = None if self.tools is None else list(self.tools)
        for index, tool in enumerate(tools or ()):
            path = f"/tools/{index}/function/parameters"
            of_tool, problem = self._tool_notes(tool, path)
            notes += of_tool
            if problem and tools is not None:
                notes.append(Note(_WIDENED, path, f"any object is allowed here: {problem}"))
                tools[index] = {"type": "function", "function": tool["function"] | {"parameters": _ANY_OBJECT}}
        if not notes:
            raise error
        return replace(self, tools=tools, is_widened=True), tuple(notes)

    def _tool_notes(self, tool: Wire, path: str) -> tuple[list[Note], str]:
        """What of a tool is not held exactly, or why nothing of its schema can be held."""
        schema = tool["function"]["parameters"]
        try:
            lower(JsonSchemaFormat(json_schema=schema, on_inexact="widen"))
            notes = _findings(schema, path)
            compile(_widened(self.dialect.format([_held(tool)], "required", "disabled").format), self.model.vocabulary)
        except SchemaError as error:
            # A schema that makes no sense is told to whoever wrote it, unless they asked for no strictness.
            if tool["function"].get("strict") is not False and not _makes_sense(schema):
                raise _under(path, SchemaError(error.problem, _inside_schema(error.path), error.fix)) from None
            return [], error.problem
        except LimitError as error:
            return [], error.problem
        return notes, ""

    def _answer_notes(self) -> list[Note]:
        """What of the answer is not held exactly; an error where it cannot be held at all."""
        if self.answer is None:
            return []
        try:
            compile(self.answer, self.model.vocabulary)
        except (SchemaError, LimitError) as error:
            try:
                compile(_widened(self.answer), self.model.vocabulary)
            except InputError as wide:
                raise _under(_ANSWER, wide) from None
            return _schema_notes(self.answer) or [Note(_WIDENED, _ANSWER + error.path, error.problem)]
        except InputError as error:
            raise _under(_ANSWER, error) from None
        return []


def _makes_sense(schema: Any) -> bool:
    """Whether some values fit a schema."""
    try:
        lower(JsonSchemaFormat(json_schema=schema, on_inexact="widen"))
    except SchemaError:
        return False
    return True


def _inside_schema(path: str) -> str:
    """The pointer into a schema of one into the format around it."""
    return path.removeprefix("/json_schema")


def _held(tool: Wire) -> Wire:
    """A tool whose schema the format holds to, be it strict or not: nobody minds if arguments fit."""
    function = {key: value for key, value in tool["function"].items() if key != "strict"}
    return {"type": "function", "function": function}


def _findings(schema: Any, path: str) -> list[Note]:
    """The keywords of a schema that are left out."""
    findings = explain_schema(schema).of("widened")
    return [Note(_WIDENED, f"{path}{one.pointer}/{one.keyword}", f"it is not held: {one.why}") for one in findings]


def _schema_notes(answer: Format) -> list[Note]:
    """The keywords that are left out of the schemas in an answer."""
    return [note for path, schema in _schemas(answer) for note in _findings(schema, path)]


def _schemas(answer: Format) -> list[tuple[str, Any]]:
    """The schemas in a format, with their paths."""
    schemas: list[tuple[str, Any]] = []
    pending: list[tuple[str, Any]] = [(_ANSWER, answer.model_dump(mode="json"))]
    while pending:
        path, node = pending.pop()
        if isinstance(node, dict) and node.get("type") == "json_schema" and "on_inexact" in node:
            schemas.append((f"{path}/json_schema", node["json_schema"]))
        elif isinstance(node, dict):
            pending += [(f"{path}/{key}", value) for key, value in node.items()]
        elif isinstance(node, list):
            pending += [(f"{path}/{index}", value) for index, value in enumerate(node)]
    return schemas


def _widened(made: Format) -> Format:
    """The format with its schemas held as far as a grammar can."""
    nodes = made.model_dump(mode="json")
    pending: list[Any] = [nodes]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if node.get("type") == "json_schema" and "on_inexact" in node:
                node["on_inexact"] = "widen"
            else:
                pending += node.values()
        elif isinstance(node, list):
            pending += node
    return load_format(nodes)


def _beginnings(dialect: Dialect, mode: ReasoningMode, begun: str) -> list[str]:
    """What the prompt may hold of a format: all that it has begun, or less what the format leaves to prompts."""
    beginnings = [begun]
    block, content = dialect.reasoning, dialect.content
    if block and block.opened_by == "prompt" and begun.startswith(block.start.strip()) and mode in _inside(block):
        beginnings = [begun.removeprefix(block.start.strip()).removeprefix(block.pad)]
    if content.prompt_opens and mode == "disabled":
        beginnings.append(begun.removeprefix(content.begins[0]))
    if dialect.turn.opened:
        beginnings.append(begun.removeprefix(dialect.turn.opened))
    return beginnings


def _inside(block: Reasoning) -> tuple[ReasoningMode, ...]:
    """In which modes a format begins inside a block that the prompt opens: also where nothing is said there."""
    return ("enabled", "disabled") if block.skipped.lstrip().startswith(block.end) else ("enabled",)


def _under(path: str, error: InputError) -> InputError:
    """An error whose path begins with the place of what it is about."""
    return type(error)(error.problem, path + error.path, error.fix)
