"""The bodies of requests, checked: pydantic models whose errors are told with the JSON Pointer of the field."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from dovetail.errors import InputError
from dovetail.formats.explain import pointer, shown
from dovetail.models.model import MAX_BIASES
from dovetail.serving.errors import RequestError

MAX_STOPS = 16
MAX_STOP_LENGTH = 1000
MAX_CHOICES = 128
MAX_TOP_LOGPROBS = 20

# How tokens are drawn beside temperature and top_p; none of it allows what a format refuses.
_DRAWING = ("top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "logit_bias")

Probability = Annotated[float, Field(ge=0, le=1)]
TokenId = Annotated[str, Field(pattern="^[0-9]{1,9}$")]
Bias = Annotated[float, Field(ge=-100, le=100)]
Stops = Annotated[list[Annotated[str, Field(max_length=MAX_STOP_LENGTH)]], Field(max_length=MAX_STOPS)]

# Fields that would change the answer, refused where an interface does not declare them; the value beside each asks for
# nothing.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "audio": (None,),
    "background": (None, False),
    "best_of": (None, 1),
    "conversation": (None,),
    "echo": (None, False),
    "function_call": (None,),
    "functions": (None,),
    "ignore_eos": (None, False),
    "modalities": (None, ["text"]),
    "previous_response_id": (None,),
    "prompt": (None,),
    "prompt_logprobs": (None,),
}


class Body(BaseModel):
    """An object of a request: what it does not know it ignores, what it knows has to have the right type."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    @classmethod
    def at(cls, value: Any, path: str) -> Self:
        """The object that stands at `path` in the request; the first thing that is wrong with it is a RequestError."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise _invalid(error, path) from None


class Thinking(Body):
    """Anthropic's way to ask for reasoning."""

    type: str
    budget_tokens: int | None = None


class Effort(Body):
    """Reasoning as the Responses interface and OpenRouter ask for it."""

    effort: str | None = None
    enabled: bool | None = None
    summary: str | None = None


class Extras(Body):
    """What every interface here takes beside its own fields: the keys that vLLM and SGLang made usual."""

    model: str = ""
    stream: bool = False
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Probability | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Probability | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: Annotated[dict[TokenId, Bias], Field(max_length=MAX_BIASES)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    soft_limit: Annotated[int, Field(ge=1)] | None = None
    structured_outputs: dict[str, Any] | None = None
    regex: str | None = None
    ebnf: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None
    include_reasoning: bool | None = None
    separate_reasoning: bool | None = None
    reasoning_effort: str | None = None

    @property
    def drawing(self) -> dict[str, Any]:
        """What Sampling is told of how tokens are drawn."""
        given = {name: value for name in _DRAWING if (value := getattr(self, name)) is not None}
        if "top_k" in given:
            given["top_k"] = max(0, given["top_k"])  # -1 is another way to ask for all tokens
        if "logit_bias" in given:
            given["logit_bias"] = {int(token): bias for token, bias in given["logit_bias"].items()}
        return given

    @classmethod
    def read(cls, body: dict[str, Any]) -> Self:
        """The request in a body; the first thing that is wrong with it is a RequestError."""
        for field, neutral in _REFUSED.items():
            if field in body and field not in cls.model_fields and not _among(body[field], neutral):
                problem = f"`{field}` is not supported here"
                raise RequestError(problem, f"/{field}", "leave it out", code="unsupported_parameter")
        extra = body.get("extra_body")
        if isinstance(extra, dict):  # meant for a client library, but often written into the JSON
            body = extra | body
        return cls.at(body, "")


def parse_body(data: bytes) -> dict[str, Any]:
    """The JSON object of a body."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        # The message tells the kind and the place of the slip, never the text.
        raise RequestError(f"the body is not JSON: {error}", "", "send a JSON object in UTF-8") from None
    if not isinstance(value, dict):
        raise RequestError("the body is no JSON object", "", 'send an object such as {"model": ..., ...}')
    return value


def _among(value: Any, neutral: tuple[Any, ...]) -> bool:
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in neutral)


def _invalid(error: ValidationError, base: str) -> InputError:
    first = error.errors(include_url=False, include_context=False)[0]
    # A union tells which of its members failed; only what stands in the body is a step.
    steps = [step for step in first["loc"] if isinstance(step, int) or not _is_member(step)]
    path = pointer(base, *steps)
    if first["type"] == "missing":
        return RequestError(f"`{steps[-1]}` is missing", path, "add it")
    return RequestError(f"this is {shown(first['input'])}", path, first["msg"])


def _is_member(step: str) -> bool:
    return step in ("str", "int", "bool", "float", "none") or "[" in step or step[:1].isupper()
