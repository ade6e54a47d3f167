"""From an Ask to what a model says: the prompt, the one grammar of the turn, and the answers as they grow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple

from dovetail.dialects import Dialect, Reasoning
from dovetail.engine import compile
from dovetail.errors import InputError
from dovetail.formats import Format, JsonSchemaFormat
from dovetail.grammar.lower import lower
from dovetail.messages import Wire
from dovetail.models import Model, Prompt, Sampling, Step
from dovetail.models.model import Finish
from dovetail.parsing import StreamParser
from dovetail.serving.constraints import relocated
from dovetail.serving.errors import RequestError
from dovetail.serving.requests import Ask, ReasoningMode
from dovetail.serving.turns import Odds, Said, Turn

_MODES: tuple[ReasoningMode, ...] = ("auto", "enabled", "disabled")
_WAITING = 8  # pieces of one choice that wait for a slow reader before the model does


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may use."""

    max_body: int = 2 << 20
    max_tokens: int = 4096
    max_tools: int = 1024
    body_timeout_s: float = 30.0
    answer_timeout_s: float = 600.0


class Piece(NamedTuple):
    """Something that a choice says; `turn` stands in the last piece of the choice."""

    choice: int
    said: Said
    turn: Turn | None = None
    spent_s: float = 0.0  # by the reader, for the token behind it


@dataclass(frozen=True, slots=True)
class Job:
    """A request that is ready to run."""

    ask: Ask
    model: Model
    dialect: Dialect
    prompt: Prompt
    prompt_ids: list[int]
    format: Format
    mode: ReasoningMode
    limits: Limits

    @property
    def tools(self) -> list[Wire] | None:
        """The tools as templates, formats and parsers take them."""
        return _wires(self.ask)

    def parser(self) -> StreamParser:
        """A parser that begins where the prompt ends."""
        return self.dialect.parser(
            self.tools,
            self.prompt.text,
            inline_reasoning=self.ask.inline_reasoning,
            response_format=self.ask.answer.format if self.ask.answer else None,
            reasoning=self.mode,
        )

    def turn(self) -> Turn:
        """A reader for one answer."""
        return Turn(self.parser(), self.ask.stops, self.ask.show_reasoning)

    def steps(self, index: int) -> AsyncGenerator[Step, None]:
        """The tokens of one choice."""
        ask = self.ask
        sampling = Sampling(
            temperature=1.0 if ask.temperature is None else ask.temperature,
            top_p=1.0 if ask.top_p is None else ask.top_p,
            seed=None if ask.seed is None else (ask.seed + index) % 2**63,
            max_tokens=min(ask.max_tokens or self.limits.max_tokens, self.limits.max_tokens),
            soft_limit=ask.soft_limit,
            logprobs=ask.top_logprobs,
        )
        return self.model.generate(self.prompt_ids, self.format, sampling, prefix=self.prompt.prefix)


def prepare(ask: Ask, model: Model, limits: Limits) -> Job:
    """Render the prompt and compile the grammar; what is wrong with the request is told with its place in it."""
    if len(ask.tools or ()) > limits.max_tools:
        raise RequestError(f"there are {len(ask.tools or ())} tools", "/tools", f"send at most {limits.max_tools}")
    dialect = model.dialect
    tools = None if ask.tool_choice == "none" else _wires(ask)
    block = dialect.reasoning
    mode = "enabled" if ask.reasoning == "auto" and block and block.opened_by == "prompt" else ask.reasoning
    prompt = model.render(
        ask.messages,
        tools,
        reasoning=mode != "disabled",
        continue_final=ask.continues,
        options=ask.template_kwargs,
    )
    try:
        made, mode, prefix = _format(ask, model, mode, prompt)
    except InputError as error:
        if not _is_lenient(ask):
            raise _placed(ask, error) from None
        try:
            made, mode, prefix = _format(ask, model, mode, prompt, loosely=True)
        except InputError as again:
            raise _placed(ask, again) from None
    return Job(ask, model, dialect, Prompt(prompt.text, prefix), model.encode(prompt.text), made, mode, limits)


def _wires(ask: Ask) -> list[Wire] | None:
    return None if ask.tools is None else [tool.wire for tool in ask.tools]


def _is_lenient(ask: Ask) -> bool:
    return any(tool.wire["function"].get("strict") is False for tool in ask.tools or ())


def _held(tool: Wire, loosely: bool) -> Wire:
    """A tool as the format holds to it: with its schema, or any object where it is not strict and that is too much."""
    function = dict(tool["function"])
    # What is not strict need not fit its schema, but nobody minds if it does.
    lenient = function.pop("strict", None) is False
    if lenient and loosely:
        function["parameters"] = {"type": "object"}
    return {"type": "function", "function": {"parameters": {"type": "object"}} | function}


def _format(
    ask: Ask, model: Model, mode: ReasoningMode, prompt: Prompt, loosely: bool = False
) -> tuple[Format, ReasoningMode, str]:
    """The one format of the turn, and what of it the prompt holds already.

    A prompt may decide what the request left open, or asked of a template in vain: whether there is to be a block of
    reasoning, and who opens it.
    """
    tools = None if ask.tools is None else [_held(tool.wire, loosely) for tool in ask.tools]
    options: dict[str, Any] = {
        "tool_choice": "auto" if ask.tool_choice is None else ask.tool_choice,
        "parallel_tool_calls": ask.parallel_tool_calls,
        "response_format": ask.answer.format if ask.answer else None,
    }
    asked: tuple[ReasoningMode, ...] = (mode, *(other for other in _MODES if other != mode))
    begun = model.dialect.parser(prompt=prompt.text).begun
    tries = [(mode, prefix) for mode in asked for prefix in _beginnings(model.dialect, mode, begun)]
    for mode, prefix in [*tries, (asked[0], prompt.prefix)]:
        made = model.dialect.format(tools, reasoning=mode, **options).format
        if compile(made, model.vocabulary).matcher().accept_bytes(prefix):
            return made, mode, prefix
    where = f"/messages/{len(ask.messages) - 1}" if ask.continues else "/messages"
    fix = "change the text that is to be continued, or what is asked of the answer"
    raise RequestError("the format of the answer does not allow its beginning in the prompt", where, fix)


def _beginnings(dialect: Dialect, mode: ReasoningMode, begun: str) -> list[str]:
    """What the prompt may hold of a format: all that it has begun, or less what the format leaves to prompts."""
    found = [begun]
    block, content = dialect.reasoning, dialect.content
    if block and block.opened_by == "prompt" and begun.startswith(block.start.strip()) and mode in _inside(block):
        found = [begun.removeprefix(block.start.strip()).removeprefix(block.pad)]
    if content.prompt_opens and mode == "disabled":
        found.append(begun.removeprefix(content.begins[0]))
    if dialect.turn.opened:
        found.append(begun.removeprefix(dialect.turn.opened))
    return found


def _inside(block: Reasoning) -> tuple[ReasoningMode, ...]:
    """In which modes a format begins inside a block that the prompt opens: also where nothing is said there."""
    return ("enabled", "disabled") if block.skipped.lstrip().startswith(block.end) else ("enabled",)


def _placed(ask: Ask, error: InputError) -> InputError:
    """The same error with the place in the request that it comes from, which a grammar no longer knows.

    Each schema is tried alone: this costs time, but only where a request has failed already.
    """
    if isinstance(error, RequestError) or error.path.startswith(("/tools", "/tool_choice", "/parallel", "/reasoning")):
        return error
    if ask.answer is not None and (found := ask.answer.error()) is not None:
        return found
    for tool in ask.tools or ():
        schema = tool.wire["function"].get("parameters", True)
        try:
            lower(JsonSchemaFormat(json_schema=schema))
        except InputError as alone:
            return relocated(alone, tool.place + alone.path.removeprefix("/json_schema"))
    return relocated(error, "/tools" if ask.tools else "")


async def run(job: Job) -> AsyncGenerator[Piece, None]:
    """All choices, side by side; closing the generator stops them."""
    deadline = asyncio.get_running_loop().time() + job.limits.answer_timeout_s
    several = _several if job.ask.choices > 1 else _choice
    async with aclosing(several(job, 0, deadline)) as pieces:
        async for piece in pieces:
            yield piece


async def _several(job: Job, first: int, deadline: float) -> AsyncGenerator[Piece, None]:
    queue: asyncio.Queue[Piece | Exception] = asyncio.Queue(_WAITING)
    still_open = job.ask.choices - first
    tasks = [asyncio.create_task(_fill(queue, job, first + i, deadline)) for i in range(still_open)]
    try:
        while still_open:
            piece = await queue.get()
            if isinstance(piece, Exception):
                raise piece
            yield piece
            still_open -= piece.turn is not None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _fill(queue: asyncio.Queue[Piece | Exception], job: Job, index: int, deadline: float) -> None:
    try:
        async with aclosing(_choice(job, index, deadline)) as pieces:
            async for piece in pieces:
                await queue.put(piece)
    except Exception as error:  # told where the choices come together
        await queue.put(error)


async def _choice(job: Job, index: int, deadline: float) -> AsyncGenerator[Piece, None]:
    """One choice: what it says, and at last its turn."""
    turn = job.turn()
    opened = turn.start()
    finish: Finish = "length"
    async with aclosing(job.steps(index)) as steps:
        while (step := await _next(steps, deadline)) is not None:
            started = time.perf_counter()
            said = turn.feed(step.data, _odds(job, step)) if step.data else turn.skip()
            finish = step.finish or finish
            # The first step is told even if it says nothing yet: the reader knows then that the answer has begun.
            if said.events or turn.counts.completion == 1:
                said = Said(opened + said.events, said.odds) if turn.counts.completion == 1 else said
                yield Piece(index, said, spent_s=time.perf_counter() - started)
            if turn.done:
                break
    yield Piece(index, turn.close(finish), turn)


async def _next(steps: AsyncGenerator[Step, None], deadline: float) -> Step | None:
    """The next step, or None at the end; the time is a limit like that on tokens, and ends the answer too."""
    try:
        async with asyncio.timeout_at(deadline):
            return await anext(steps, None)
    except TimeoutError:
        return None


def _odds(job: Job, step: Step) -> Odds | None:
    if job.ask.top_logprobs is None:
        return None
    spelled = job.model.vocabulary.token_bytes
    return Odds(spelled(step.token), step.logprob, tuple((spelled(token), logprob) for token, logprob in step.top))
