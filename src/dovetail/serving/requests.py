"""A request of any interface in one shape: what was said, which tools there are, and what is asked of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dovetail.dialects.requests import ReasoningMode
from dovetail.errors import MessageError
from dovetail.messages import Message, Wire
from dovetail.serving.constraints import Answer, read_answer
from dovetail.serving.errors import RequestError
from dovetail.serving.fields import Extras

MAX_MESSAGES = 10_000

_OFF = ("none", "disabled", "off")
# The names under which chat templates take the wish to think.
_TEMPLATE_SWITCHES = ("enable_thinking", "thinking")


class Tool(NamedTuple):
    """A tool as chat templates take it, and where in the request the schema of its arguments stands."""

    wire: Wire
    place: str


Tools = tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: `messages` in the shape that chat templates take."""

    model: str
    messages: list[Wire]
    tools: Tools | None = None
    tool_choice: Any = "auto"
    parallel_tool_calls: bool = True
    reasoning: ReasoningMode = "auto"
    answer: Answer | None = None
    continues: bool = False  # the last message is the beginning of the answer
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    soft_limit: int | None = None  # after so many tokens the answer is led to its end
    temperature: float | None = None
    top_p: float | None = None
    drawing: Mapping[str, Any] = field(default_factory=dict)  # what else Sampling says of how tokens are drawn
    seed: int | None = None
    stops: tuple[str, ...] = ()
    choices: int = 1
    top_logprobs: int | None = None  # None where no probabilities are asked for
    stream: bool = False
    include_usage: bool = False
    show_reasoning: bool = True
    inline_reasoning: bool = False

    def place(self, path: str) -> str:
        """The pointer into this request for one into the turn that is planned for it."""
        if self.answer is not None and path.startswith("/response_format"):
            return self.answer.place(path.removeprefix("/response_format"))
        for index, tool in enumerate(self.tools or ()):
            inner = f"/tools/{index}/function/parameters"
            if path == inner or path.startswith(inner + "/"):
                return tool.place + path.removeprefix(inner)
        return path


def common(extras: Extras, response_format: Any, path: str = "/response_format") -> dict[str, Any]:
    """The fields of an Ask that every interface reads alike."""
    sources = {"structured_outputs": extras.structured_outputs, "regex": extras.regex, "ebnf": extras.ebnf}
    answer = read_answer({"response_format": response_format} | sources, path)
    return {
        "model": extras.model,
        "answer": answer,
        "stream": extras.stream,
        "temperature": extras.temperature,
        "top_p": extras.top_p,
        "drawing": extras.drawing,
        "seed": extras.seed,
        "soft_limit": extras.soft_limit,
        "show_reasoning": extras.include_reasoning is not False,
        "inline_reasoning": extras.separate_reasoning is False,
    }


def reasoning(extras: Extras, effort: str | None, enabled: bool | None) -> tuple[ReasoningMode, dict[str, Any]]:
    """Whether to think, and what the chat template is told of it, from every spelling of the wish."""
    kwargs = dict(extras.chat_template_kwargs or {})
    effort = effort or extras.reasoning_effort
    wishes = [enabled, None if effort is None else effort not in _OFF]
    wishes += [wish for key in _TEMPLATE_SWITCHES if isinstance(wish := kwargs.get(key), bool)]
    wish = next((wish for wish in wishes if wish is not None), None)
    if effort is not None and effort not in _OFF:
        kwargs.setdefault("reasoning_effort", effort)
    if wish is None:
        return "auto", kwargs
    for key in _TEMPLATE_SWITCHES:
        kwargs.setdefault(key, wish)
    return ("enabled" if wish else "disabled"), kwargs


def function(name: str, description: str | None, parameters: Any, strict: bool | None, place: str) -> Tool:
    """A tool that is a function, of whichever interface."""
    made: Wire = {"name": name, "description": description or ""}
    if parameters is not None:
        made["parameters"] = parameters
    return Tool({"type": "function", "function": made | ({} if strict is None else {"strict": strict})}, place)


def chat_message(message: Any, path: str) -> Wire:
    """A Chat Completions message as templates take it: text joined, arguments as objects."""
    if not isinstance(message, dict):
        raise RequestError("a message is an object", path, 'write {"role": "user", "content": ...}')
    role = message.get("role")
    match role:
        case "assistant":
            return assistant(message, path)
        case "system" | "developer" | "user":
            return {"role": "system" if role == "developer" else role, "content": text_of(message, path)}
        case "tool" | "function":
            turn: Wire = {"role": "tool", "content": text_of(message, path)}
            return turn | {key: message[key] for key in ("tool_call_id", "name") if isinstance(message.get(key), str)}
    raise RequestError(f"there is no role {role!r:.40}", f"{path}/role", "use system, user, assistant or tool")


def assistant(message: Mapping[str, Any], path: str) -> Wire:
    """A turn of the model in the history."""
    try:
        turn = Message.from_openai(message)
    except MessageError as error:
        raise MessageError(error.problem, path + error.path, error.fix) from None
    return turn.to_hf()


def text_of(message: Mapping[str, Any], path: str) -> str:
    """The text of a message; parts that are no text are refused, because nothing here could see them."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None:
        raise RequestError("the message has no content", f"{path}/content", "give it a text")
    return join_parts(content, f"{path}/content")


def join_parts(parts: Any, path: str) -> str:
    """The texts of a list of parts."""
    if not isinstance(parts, list):
        raise RequestError("content is a text or a list of parts", path, "write it as a string")
    texts = []
    for index, part in enumerate(parts):
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise RequestError(f"a part of type {kind!r:.40} is no text", f"{path}/{index}", "send text only")
        texts.append(text)
    return "".join(texts)


def check_count(messages: list[Any], path: str) -> None:
    """Refuse a conversation without messages, or with more than anybody writes."""
    if not messages:
        raise RequestError("there are no messages", path, "send at least one")
    if len(messages) > MAX_MESSAGES:
        raise RequestError(f"there are {len(messages)} messages", path, f"send at most {MAX_MESSAGES}")


def continued(messages: list[Wire], path: str) -> None:
    """Refuse to go on behind something that is no beginning of an answer."""
    last = messages[-1]
    if last.get("role") != "assistant" or last.get("tool_calls"):
        fix = "end the messages with an assistant message that has text only"
        raise RequestError("there is no answer to continue", f"{path}/{len(messages) - 1}", fix)
