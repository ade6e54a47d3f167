"""From an Ask to what a model says: the prompt, the one grammar of the turn, and the answers as they grow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

from dovetail.errors import InputError
from dovetail.models import LocalTurn, Model, Note, Sampling, Step, plan_turn
from dovetail.models.model import Finish, RemoteModel
from dovetail.parsing import StreamParser
from dovetail.serving.constraints import relocated
from dovetail.serving.errors import RequestError
from dovetail.serving.requests import Ask
from dovetail.serving.turns import Delta, Odds, Turn

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
    delta: Delta
    turn: Turn | None = None
    spent_s: float = 0.0  # by the reader, for the token behind it


@dataclass(frozen=True, slots=True)
class Job:
    """A request that is ready to run."""

    ask: Ask
    local: LocalTurn
    limits: Limits

    def parser(self) -> StreamParser:
        """A parser that begins where the prompt ends."""
        return self.local.parser(inline_reasoning=self.ask.inline_reasoning)

    def turn(self) -> Turn:
        """A reader for one answer."""
        return Turn(self.parser(), self.ask.stops, self.ask.show_reasoning)

    def steps(self, index: int) -> AsyncGenerator[Step, None]:
        """The tokens of one choice."""
        ask = self.ask
        sampling = Sampling(
            temperature=1.0 if ask.temperature is None else ask.temperature,
            top_p=1.0 if ask.top_p is None else max(ask.top_p, 1e-9),
            **ask.drawing,
            seed=None if ask.seed is None else (ask.seed + index) % 2**63,
            max_tokens=min(ask.max_tokens or self.limits.max_tokens, self.limits.max_tokens),
            soft_limit=ask.soft_limit,
            logprobs=ask.top_logprobs,
        )
        return self.local.steps(sampling)


def prepare(ask: Ask, model: Model, limits: Limits) -> Job:
    """Render the prompt and compile the grammar; what is wrong with the request is told with its place in it."""
    if len(ask.tools or ()) > limits.max_tools:
        raise RequestError(f"there are {len(ask.tools or ())} tools", "/tools", f"send at most {limits.max_tools}")
    try:
        local = plan_turn(
            model,
            ask.messages,
            tools=None if ask.tools is None else [tool.wire for tool in ask.tools],
            tool_choice="auto" if ask.tool_choice is None else ask.tool_choice,
            parallel_tool_calls=ask.parallel_tool_calls,
            response_format=ask.answer.format if ask.answer else None,
            reasoning=ask.reasoning,
            continue_final=ask.continues,
            options=ask.template_kwargs,
        )
    except InputError as error:
        raise relocated(error, ask.place(error.path)) from None
    notes = tuple(note._replace(path=ask.place(note.path)) for note in local.notes)
    if ask.soft_limit is not None and isinstance(model, RemoteModel):
        notes += (Note("not_led", "/soft_limit", "an engine does not lead an answer to its end: it may be cut off"),)
    return Job(ask, replace(local, notes=notes), limits)


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
    led = False
    async with aclosing(job.steps(index)) as steps:
        while (step := await _next(steps, deadline)) is not None:
            started = time.perf_counter()
            delta = turn.feed(step.data, _odds(job, step)) if step.data else turn.skip()
            finish, led = step.finish or finish, step.led
            # The first step is told even if it says nothing yet: the reader knows then that the answer has begun.
            if delta.events or turn.counts.completion == 1:
                delta = Delta(opened + delta.events, delta.odds) if turn.counts.completion == 1 else delta
                yield Piece(index, delta, spent_s=time.perf_counter() - started)
            if turn.done:
                break
    yield Piece(index, turn.close(finish, led), turn)


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
    spelled = job.local.model.vocabulary.token_bytes
    return Odds(spelled(step.token), step.logprob, tuple((spelled(token), logprob) for token, logprob in step.top))
