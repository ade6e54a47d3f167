"""Chat templates rendered byte for byte as Hugging Face Transformers renders them, in a sandbox with a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from dovetail.errors import LimitError, TemplateError

if TYPE_CHECKING:
    import jinja2
    from jinja2 import nodes

_T = TypeVar("_T")

# The names under which messages carry their reasoning; templates read the first, those of gpt-oss the second.
_REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")
_MAX_SOURCE = 1 << 18  # characters; the longest real template that we know has 40 thousand
_MARK = "Zqcontinueq "  # a word that no template writes by itself, and a blank
_NOT_JINJA = "correct the template: Jinja2 as Transformers runs it, with loop controls and the generation tag"


class ChatTemplate:
    """A compiled chat template; `clock` tells `strftime_now` the time.

    Where `lenient`, it may also do what Transformers refuses and other runtimes take: change lists, add what is
    undefined to text, write lazy items as JSON.
    """

    def __init__(
        self,
        source: str,
        bos_token: str = "",
        eos_token: str = "",
        *,
        clock: Callable[[], datetime] = datetime.now,
        lenient: bool = False,
    ) -> None:
        self.source = source
        self.bos_token = bos_token
        self.eos_token = eos_token
        self._clock = clock
        self._compiled = _compile(source, lenient)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        **kwargs: Any,
    ) -> str:
        """The prompt; TemplateError where the template fails or refuses, LimitError where it goes beyond its budget.

        With `continue_final_message` it ends where the last message does, for the model to go on from: in its content,
        or in the field that is named.
        """
        from dovetail.templates import sandbox

        try:
            values = self._values(messages, tools, add_generation_prompt, kwargs)
            if continue_final_message:
                _mark_end(values["messages"], "content" if continue_final_message is True else continue_final_message)
            text = sandbox.render(self._compiled, values, self._clock)
            return _until_mark(text) if continue_final_message else text
        except Exception as error:  # what a template can raise has no end
            raise _explained(error, self._compiled) from error

    def _values(
        self, messages: Any, tools: Any, add_generation_prompt: bool, options: dict[str, Any]
    ) -> dict[str, Any]:
        given = {"bos_token": self.bos_token, "eos_token": self.eos_token, "documents": None, **options}
        chat = [_with_reasoning(message) for message in _plain(messages)]
        asked = {"messages": chat, "tools": _plain(tools), "add_generation_prompt": add_generation_prompt}
        return {**_plain(given), **asked}

    def __repr__(self) -> str:
        return f"ChatTemplate({len(self.source)} characters)"


def syntax_tree(source: str) -> nodes.Template:
    """The syntax tree of a template, for those who read its source."""
    from dovetail.templates import sandbox

    return _taken(source, lambda: sandbox.syntax_tree(source))


@lru_cache(maxsize=128)
def _compile(source: str, lenient: bool) -> jinja2.Template:
    from dovetail.templates import sandbox

    return _taken(source, lambda: sandbox.compile_template(source, lenient))


def _taken(source: str, take: Callable[[], _T]) -> _T:
    if len(source) > _MAX_SOURCE:
        problem = f"the chat template has {len(source)} characters, and {_MAX_SOURCE} is the limit"
        raise LimitError(problem, "", "is this a chat template? Real ones have a few thousand characters")
    try:
        return take()
    except Exception as error:  # among them RecursionError and MemoryError of Python's own compiler
        raise _explained(error, None) from error


def _with_reasoning(message: Any) -> Any:
    """Transformers fills the other names of reasoning in, so that any template finds it under its own."""
    if not isinstance(message, dict):
        problem = f"a chat message is a {type(message).__name__}"
        raise TemplateError(problem, "/messages", "give each message as a dict with role and content")
    reasoning = next((message[name] for name in _REASONING_FIELDS if message.get(name) is not None), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _mark_end(chat: list[dict[str, Any]], field: str) -> None:
    """Put the mark behind what is to be continued, wherever a template may read it."""
    last = chat[-1] if chat else {}
    text = last.get(field)
    if isinstance(text, list):
        part = next((part for part in reversed(text) if isinstance(part, dict) and "text" in part), None)
        if part is not None:
            part["text"] += _MARK
            return
    if not isinstance(text, str):
        problem = f"the last message has no {field} to continue"
        raise TemplateError(problem, f"/messages/{len(chat) - 1}", "give it one, or set add_generation_prompt")
    names = [name for name in _REASONING_FIELDS if last.get(name) == text] if field in _REASONING_FIELDS else [field]
    last |= dict.fromkeys(names, text + _MARK)


def _until_mark(text: str) -> str:
    before, mark, behind = text.rpartition(_MARK.rstrip())
    if not mark:
        problem = "the chat template leaves out what is to be continued"
        raise TemplateError(problem, "/messages", "continue another field, or set add_generation_prompt")
    # A template that trims has taken the blank of the mark, and would have taken those before it.
    return before if behind.startswith(" ") else before.rstrip()


def _plain(value: Any) -> Any:
    """Only plain JSON types reach a template: methods of richer objects are beyond what the sandbox knows."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind.__str__(value) if kind is str else kind(value)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if callable(dump := getattr(value, "model_dump", None)):
        return _plain(dump())
    return f"<{type(value).__name__}>"


def _explained(error: Exception, compiled: jinja2.Template | None) -> Exception:
    import jinja2

    if isinstance(error, TemplateError):
        return error
    if isinstance(error, LimitError):
        return LimitError(error.problem, error.path or _place(error, compiled), error.fix)
    place = _place(error, compiled)
    if isinstance(error, jinja2.TemplateSyntaxError):
        return TemplateError(f"the chat template is not Jinja2: {error.message}", f"line {error.lineno}", _NOT_JINJA)
    if isinstance(error, RecursionError):
        return LimitError("the chat template nests or recurses too deeply", place, "unroll the recursion")
    if isinstance(error, jinja2.exceptions.SecurityError):
        fix = "a chat template may read messages and plain data, not the insides of Python"
        return TemplateError(f"the chat template reaches out of its sandbox: {error.message}", place, fix)
    if isinstance(error, jinja2.UndefinedError):
        fix = "test that a variable is defined before its attributes are read"
        return TemplateError(f"the chat template uses what is not there: {error.message}", place, fix)
    if isinstance(error, jinja2.TemplateError):
        problem = f"the chat template refuses these messages: {error.message}"
        return TemplateError(problem, place, "give messages, tools and options that the template takes")
    problem = f"the chat template fails: {type(error).__name__}: {error}"
    return TemplateError(problem, place, "correct the expression, or the value that it is given")


def _place(error: Exception, compiled: jinja2.Template | None) -> str:
    """The line of the innermost frame that runs the template."""
    line, frame = 0, error.__traceback__
    while compiled is not None and frame is not None:
        if frame.tb_frame.f_code.co_filename == "<template>":
            line = compiled.get_corresponding_lineno(frame.tb_lineno)
        frame = frame.tb_next
    return f"line {line}" if line else ""
