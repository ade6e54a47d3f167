"""One conversation with the model: the run's own, or that of a subagent. Both are the same loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dovetail.agent.exit_reasons import PREVIEW, HaltError
from dovetail.agent.loop.batch import Batch, Done
from dovetail.agent.loop.calls import Caller, short
from dovetail.agent.loop.compaction import FULL, cut, digest, is_overflow, summary_request
from dovetail.agent.loop.guards import LoopGuard
from dovetail.agent.loop.registry import Registry
from dovetail.agent.loop.reply import CHARS_PER_TOKEN, Reply, chars_of, read_reply, turn_chars
from dovetail.agent.loop.state import State
from dovetail.agent.protocols import Tasks
from dovetail.agent.types import (
    Image,
    ProviderError,
    Request,
    Restarted,
    ToolChoice,
    ToolResult,
    ToolTurn,
    Turn,
    Usage,
    UserTurn,
)

# A subagent that has not answered by then is stopped; the run's own turns are bounded by its budget.
SUBAGENT_TURNS = 50


class Conversation:
    """A history that grows turn by turn; `depth` 0 is the run itself, and `parent` the call that started a subagent."""

    def __init__(
        self,
        state: State,
        registry: Registry,
        tasks: Tasks | None = None,
        *,
        depth: int = 0,
        parent: str | None = None,
        history: Sequence[Turn] = (),
        system: str | None = None,
    ) -> None:
        self._state = state
        self._registry = registry
        self._caller = Caller(state, registry, tasks, depth, parent)
        self._depth = depth
        self._parent = parent
        self._system = state.system if system is None else system
        self.history: list[Turn] = list(history)
        self.inbox: list[str] = []  # what others say to a running agent; it hears it before its next turn
        self.usage = Usage()
        self.calls = 0
        self.finish = ""  # why the last reply without calls ended
        self._turns = 0
        self._measured = 0  # how many turns the last request had, and how many tokens
        self._reply_s = 0.0  # that the last reply took
        self._measured_tokens = 0

    async def ask(
        self, text: str, choice: ToolChoice = "auto", subtype: str = "", images: tuple[Image, ...] = ()
    ) -> str:
        """Say something and go on until the model stops calling tools, or has delivered; its last prose."""
        self._say(text, subtype, images)
        guard = LoopGuard(self._state.limits.loop, self._state.limits.max_calls_per_prompt)
        while True:
            if self._state.cancel.is_set():  # a tool may have swallowed the cancellation of its task
                raise asyncio.CancelledError
            self._count_turn()
            for message in self._take_inbox():
                self._say(message, "message")
            reply = await self._fitting_reply(choice)
            choice = "auto"
            if not reply.turn.tool_uses:
                self.finish = reply.finish
                return reply.turn.text
            await self._work(reply, guard)
            if self._depth == 0 and self._state.captured:
                return reply.turn.text

    def _count_turn(self) -> None:
        self._state.budget.turn(self._depth)
        if self._depth == 0:
            return
        self._turns += 1
        if self._turns > SUBAGENT_TURNS:
            raise HaltError("max_turns", f"the subagent did not finish within {SUBAGENT_TURNS} turns")

    def _take_inbox(self) -> list[str]:
        waiting, self.inbox = self.inbox, []
        return waiting

    def _say(self, text: str, subtype: str, images: tuple[Image, ...] = ()) -> None:
        turn = UserTurn(text, images)
        self.history.append(turn)
        if self._depth == 0:
            self._state.parts.recorder.record(turn, subtype=subtype)
        else:
            self._state.parts.output.user(text, self._parent)

    async def _fitting_reply(self, choice: ToolChoice) -> Reply:
        """The next reply, with room made in the context before it, or once the service asks for it."""
        window = self._state.window
        tokens = self._tokens(choice)
        if window and tokens > FULL * window:
            await self._make_room(window, tokens)
        try:
            return await self._reply(self._request(choice))
        except ProviderError as error:
            tokens = self._tokens(choice)
            if not is_overflow(error) or not await self._make_room(min(window or tokens, tokens), tokens):
                raise
        return await self._reply(self._request(choice))

    def _request(self, choice: ToolChoice) -> Request:
        return Request(tuple(self.history), self._system, self._registry.specs(), choice)

    def _tokens(self, choice: ToolChoice) -> int:
        """About how many tokens the next request has: as many as the last one, and what came since."""
        since = sum(map(turn_chars, self.history[self._measured :]))
        base = self._measured_tokens or (chars_of(self._request(choice)) - since) / CHARS_PER_TOKEN
        return round(base + since / CHARS_PER_TOKEN)

    async def _make_room(self, window: int, tokens: int) -> bool:
        """Put a summary in place of the middle of the history; whether there was anything to sum up."""
        divided = cut(self.history, window)
        if divided is None:
            return False
        state, parts = self._state, self._state.parts
        try:
            state.budget.turn(self._depth)
            reply = await self._ask_model(summary_request(divided.middle, window), lambda _: None)
            summary = reply.turn.text.strip() or digest(divided.middle)
        except ProviderError:
            summary = digest(divided.middle)
        self.history = divided.joined(summary)
        self._measured = self._measured_tokens = 0
        data = {"before_tokens": tokens, "after_tokens": self._tokens("auto"), "turns": len(divided.middle)}
        parts.warn(f"The history was summed up: about {tokens} tokens became {data['after_tokens']}.")
        parts.output.system("compaction", data, self._parent)
        parts.telemetry.event("chat_compression", data)
        if self._depth == 0:
            first = self.history[0]
            assert isinstance(first, UserTurn)
            parts.recorder.system("chat_compression", {**data, "text": first.text, "keptTurns": len(divided.tail)})
        return True

    async def _reply(self, request: Request) -> Reply:
        reply = await self._ask_model(request, self._show_piece)
        self._measured, self._measured_tokens = len(self.history), reply.usage.input_tokens
        self._keep(reply)
        return reply

    async def _ask_model(self, request: Request, show: Callable[[Mapping[str, Any]], None]) -> Reply:
        state, parts = self._state, self._state.parts
        parts.telemetry.event("api_request", {"model": parts.provider.model, "turn": state.budget.turns})
        began = time.monotonic()
        try:
            reply = await read_reply(parts.provider, request, show, state.call_ids, self._restarted, self._spend)
        except ProviderError as error:
            # What a service says about a failure may quote what it was sent.
            parts.telemetry.event("api_error", {"status": error.status or 0, "error": type(error).__name__})
            raise
        finally:
            self._reply_s = time.monotonic() - began
            state.api_s += self._reply_s
        attributes = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
        parts.telemetry.event("api_response", attributes)
        return reply

    def _keep(self, reply: Reply) -> None:
        state, parts = self._state, self._state.parts
        rate = reply.usage.output_tokens / max(self._reply_s, 1e-6)
        usage = f"{reply.usage.input_tokens} in, {reply.usage.output_tokens} out, {rate:.0f}/s"
        if state.budget.turns > 1:
            usage += f", {state.budget.usage.total} so far"
        state.note(f"{parts.provider.model}  {usage}  {short(reply.turn.text)}".rstrip(), self._depth)
        if not reply.turn.blocks:
            return
        self.history.append(reply.turn)
        parts.output.assistant(reply.turn, reply.usage, self._parent)
        if self._depth == 0:
            parts.recorder.record(reply.turn, usage=reply.usage, model=parts.provider.model)
            if len(state.prose) < PREVIEW:
                state.prose += reply.turn.text

    def _spend(self, usage: Usage, is_estimated: bool) -> None:
        self.usage += usage
        self._state.budget.spend(self._state.parts.provider.model, usage, is_estimated)

    async def _work(self, reply: Reply, guard: LoopGuard) -> None:
        self.calls += len(reply.turn.tool_uses)
        batch = Batch(self._state, self._caller, self._registry, reply, self._depth)
        try:
            await batch.run(guard, self._show_result)
        finally:
            done = batch.done()
            guard.learn(reply.turn.tool_uses, done.results)
            self._answer(done)

    def _answer(self, done: Done) -> None:
        self.history.append(ToolTurn(done.results))
        if self._depth == 0:
            self._state.parts.recorder.record(ToolTurn(done.recorded))

    def _show_piece(self, event: Mapping[str, Any]) -> None:
        self._state.parts.output.event(event, self._parent)

    def _show_result(self, result: ToolResult) -> None:
        self._state.parts.output.tool_result(result, self._parent)

    def _restarted(self, restart: Restarted) -> None:
        parts = self._state.parts
        data: dict[str, Any] = {"attempt": restart.attempt, "delay_s": restart.delay_s}
        if restart.status is not None:
            data["status"] = restart.status
        if restart.model:
            names = {"fromModel": parts.provider.model, "toModel": restart.model, "statusCode": restart.status}
            parts.warn(f"The model {parts.provider.model} failed ({restart.reason}); {restart.model} takes over.")
            parts.telemetry.event("model_fallback", names)
            parts.output.system("model_fallback", names, self._parent)
            return
        pause = f"in {restart.delay_s:.1f} s" if restart.delay_s >= 0.1 else "now"
        parts.warn(f"The model could not be asked ({restart.reason}); attempt {restart.attempt + 1} begins {pause}.")
        parts.telemetry.event("api_retry", data)
        parts.output.system("api_retry", {"reason": restart.reason, **data}, self._parent)


async def settled(tasks: Sequence[asyncio.Task[Any]], timeout_s: float) -> bool:
    """Wait for tasks, but no longer than this; whether all are done."""
    if not tasks:
        return True
    _, pending = await asyncio.wait(tasks, timeout=timeout_s)
    return not pending
