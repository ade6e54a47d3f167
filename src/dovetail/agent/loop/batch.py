"""All calls of one reply: which run, in which order, and one result for each on every way out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dovetail.agent.exit_reasons import CUT_OFF, Captured, HaltError
from dovetail.agent.loop.calls import Called, Caller
from dovetail.agent.loop.guards import LoopGuard, fingerprint
from dovetail.agent.loop.registry import Registry
from dovetail.agent.loop.reply import Reply
from dovetail.agent.loop.state import State
from dovetail.agent.types import ToolResult

SKIPPED = "Skipped: this turn's structured_output contract took precedence as the terminal output."
REISSUE = " Re-issue this call in a separate turn if needed."


@dataclass(frozen=True, slots=True)
class Done:
    """The results of a batch in the order of its calls, for the model and for the transcript."""

    results: tuple[ToolResult, ...]
    recorded: tuple[ToolResult, ...]


class Batch:
    """The calls of one reply while they are worked off."""

    def __init__(self, state: State, caller: Caller, registry: Registry, reply: Reply, depth: int) -> None:
        self._state = state
        self._caller = caller
        self._registry = registry
        self._reply = reply
        self._depth = depth
        self._uses = reply.turn.tool_uses
        self._slots: list[Called | None] = [None] * len(self._uses)
        self._shown = 0
        self._captured: Captured | None = None

    async def run(self, guard: LoopGuard, show: Callable[[ToolResult], None]) -> Done:
        """Work the calls off; if the run ends meanwhile, the rest is answered as cancelled before it does."""
        try:
            self._guard(guard)
            pending = self._answer_replays()
            structured = [index for index in pending if self._state.is_terminal(self._uses[index], self._depth)]
            await self._execute(structured or pending, show)
            self._skip(pending)
        except BaseException:
            for index in self._empty():
                self._fill(index, ToolResult(self._uses[index].id, self._uses[index].name, CUT_OFF, True, "cancelled"))
            raise
        finally:
            self._show(show)
        return self.done()

    def done(self) -> Done:
        """What there is; complete once `run` has returned or raised."""
        called = [slot for slot in self._slots if slot is not None]
        return Done(tuple(each.result for each in called), tuple(each.recorded for each in called))

    def _guard(self, guard: LoopGuard) -> None:
        for use in self._uses:
            problem = guard.see(use)
            if problem:
                raise HaltError("loop_detected", problem)

    def _answer_replays(self) -> list[int]:
        """Answer the calls that were handled before under the same id; the others are pending."""
        state, pending = self._state, []
        state.given_ids |= set(filter(None, self._reply.provider_ids))
        for index, (use, given) in enumerate(zip(self._uses, self._reply.provider_ids, strict=True)):
            if not given or not state.is_replay(given, fingerprint(use), self._reads(index)):
                pending.append(index)
                continue
            if given in state.replayed:
                raise HaltError(
                    "loop_detected", f'Loop detection halted the run: the call id "{given}" keeps coming back.'
                )
            state.replayed.add(given)
            text = f'Duplicate provider tool call id "{given}" was already handled.'
            self._fill(index, ToolResult(use.id, use.name, text, True, "duplicate"))
        return pending

    async def _execute(self, order: Sequence[int], show: Callable[[ToolResult], None]) -> None:
        for group in self._groups(order):
            stop: HaltError | None = None
            launched: list[int] = []
            for index in group:
                stop = None if self._exempt(index) else self._state.budget.tool_call()
                if stop:
                    break
                launched.append(index)
            await self._launch(launched)
            self._show(show)
            if stop:
                raise stop
            if self._captured:
                self._state.captured = self._captured
                return
            self._count_failures(launched)

    async def _launch(self, indices: Sequence[int]) -> None:
        gate = asyncio.Semaphore(max(1, self._state.limits.max_parallel))
        cut = self._reply.finish == "length"

        halts: list[HaltError] = []

        async def one(index: int) -> None:
            async with gate:
                try:
                    called = await self._caller.call(self._uses[index], cut)
                except HaltError as halt:  # a subagent used up what the run may use
                    halts.append(halt)
                    return
            self._slots[index] = called
            self._captured = self._captured or called.captured

        async with asyncio.TaskGroup() as group:
            for index in indices:
                group.create_task(one(index))
        if halts:
            raise halts[0]

    def _groups(self, order: Sequence[int]) -> Iterator[list[int]]:
        """Neighbors that may run side by side are one group, everything else is by itself."""
        group: list[int] = []
        for index in order:
            if self._runs_beside(index):
                group.append(index)
                continue
            if group:
                yield group
            yield [index]
            group = []
        if group:
            yield group

    def _runs_beside(self, index: int) -> bool:
        """Whether a call may run beside others: it changes nothing, or is a function whose author says so."""
        tool = self._registry.get(self._uses[index].name)
        return self._reads(index) or getattr(tool, "parallel", False) is True

    def _reads(self, index: int) -> bool:
        tool = self._registry.get(self._uses[index].name)
        return tool is not None and tool.read_only

    def _exempt(self, index: int) -> bool:
        return self._state.is_terminal(self._uses[index], self._depth)

    def _count_failures(self, indices: Sequence[int]) -> None:
        for index in indices:
            called = self._slots[index]
            if self._state.is_terminal(self._uses[index], self._depth) and called and called.result.is_error:
                self._state.budget.structured_failure()

    def _skip(self, pending: Sequence[int]) -> None:
        for index in pending:
            if self._slots[index] is not None:
                continue
            use = self._uses[index]
            text = SKIPPED if self._captured else SKIPPED + REISSUE
            self._fill(index, ToolResult(use.id, use.name, text, status="skipped"))
            self._state.suppressed.append({"tool_name": use.name, "tool_use_id": use.id})

    def _fill(self, index: int, result: ToolResult) -> None:
        self._slots[index] = Called(result, result)

    def _empty(self) -> Iterator[int]:
        return (index for index, slot in enumerate(self._slots) if slot is None)

    def _show(self, show: Callable[[ToolResult], None]) -> None:
        """Show results in the order of the calls, as far as they are there without a gap."""
        while self._shown < len(self._slots):
            slot = self._slots[self._shown]
            if slot is None:
                return
            show(slot.result)
            self._shown += 1
