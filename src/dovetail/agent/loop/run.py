"""A whole run: the prompt, the background, reminders, signals and budgets, and exactly one ending."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dovetail.agent.contract import Contract
from dovetail.agent.exit_reasons import CANCELLED, Ending, HaltError, Reason, missing_message, refused_reply
from dovetail.agent.loop.budget import Budget, Limits, wall_time_message
from dovetail.agent.loop.conversation import Conversation
from dovetail.agent.loop.guards import fingerprint
from dovetail.agent.loop.outputs import Outputs, WithOutputs
from dovetail.agent.loop.registry import Registry, Terminal
from dovetail.agent.loop.state import Parts, State
from dovetail.agent.loop.tasks import RunTasks
from dovetail.agent.protocols import Tool
from dovetail.agent.providers.catalog import Catalog
from dovetail.agent.types import (
    STRUCTURED_OUTPUT,
    AssistantTurn,
    AuthenticationError,
    HookDecision,
    Image,
    Named,
    ProviderError,
    ToolChoice,
    ToolLimits,
    Turn,
)

REMINDER = (
    "Your answer was plain text, which is thrown away: this run only ends with a call of structured_output. Call it "
    "now with what you have found out, or go on working and call it when you are done."
)
_SYSTEM = (
    "You work without a person at the other end: nobody can answer questions or confirm anything. Your workspace is "
    "the directory {workspace}. Use the tools to find out what you need instead of guessing, and finish the task."
)
_SYSTEM_CONTRACT = (
    " Deliver your result by calling structured_output, by itself and once you have everything: its first valid call "
    "ends the session, and plain text is thrown away."
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is asked to do, and within which bounds."""

    prompt: str
    workspace: Path
    contract: Contract | None = None
    limits: Limits = field(default_factory=Limits)
    tool_limits: ToolLimits = field(default_factory=ToolLimits)
    system_prompt: str | None = None
    append_system_prompt: str = ""
    images: tuple[Image, ...] = ()
    history: tuple[Turn, ...] = ()
    init: Mapping[str, Any] = field(default_factory=dict)
    context_window: int | None = None
    catalog: Catalog = field(default_factory=Catalog)


class Run:
    """One run. `abort` may be called at any time from the loop's thread; the first cause wins."""

    def __init__(self, plan: Plan, parts: Parts, tools: Sequence[Tool]) -> None:
        recorded = parts.recorder.path
        outputs = Outputs(plan.tool_limits.max_output_chars, recorded and recorded.with_suffix(".outputs"))
        parts = replace(parts, permissions=WithOutputs(parts.permissions, outputs, plan.workspace))
        self._plan = plan
        self._parts = parts
        contract = plan.contract
        terminal = Terminal(contract.parameters, contract.example_arguments) if contract else None
        self._registry = Registry(tools, parts.permissions, terminal)
        self._state = State(
            parts,
            plan.workspace,
            plan.limits,
            contract,
            Budget(plan.limits, contract is not None, plan.catalog),
            _system(plan),
            abort=self.abort,
            outputs=outputs,
            context_window=plan.context_window,
        )
        self._state.tool_limits = plan.tool_limits
        self._state.handled = _handled(plan.history)
        self._state.call_ids = set(self._state.handled)
        self._state.given_ids = set(self._state.handled)
        self._cause: tuple[Reason, str] | None = None
        self._work_task: asyncio.Task[Ending] | None = None
        self._reported: Ending | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The event stream, where the output keeps it."""
        return self._parts.output.messages

    @property
    def figures(self) -> Mapping[str, Any]:
        """Durations, turns, usage and denials so far."""
        return self._state.figures()

    def abort(self, reason: Reason, message: str) -> None:
        """End the run early; once the answer is captured nothing can take it back."""
        if self._cause is None and self._state.captured is None:
            self._cause = (reason, message)
            self._state.cancel.set()
            if self._work_task:
                self._work_task.cancel()

    async def execute(self) -> Ending:
        """Run to the end, close the background, and emit the one result."""
        parts, seconds = self._parts, self._plan.limits.max_wall_time_s
        timer = None
        if seconds > 0:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(seconds, self.abort, "wall_time", wall_time_message(seconds))
        tasks = RunTasks(self._state, lambda: self._registry)
        try:
            ending = await self._ending(tasks)
            if self._cause is None:
                self._warn(await self._parts.hooks.stop(ending.reason))
        finally:
            if timer:
                timer.cancel()
            self._state.cancel.set()
        await tasks.close()
        self._state.outputs.close()
        return self._close(ending, parts)

    def interrupt(self) -> None:
        """End the run as a user who gives up does."""
        self.abort("cancelled", CANCELLED)

    def cut_short(self, ending: Ending) -> Ending:
        """Tell an ending in place of a run that does not come to its own, and return the one that was told."""
        if self._reported is not None:
            return self._reported
        if self._state.captured is not None:
            ending = Ending("structured_output", captured=self._state.captured)
        self._parts.output.break_off()
        return self._close(ending, self._parts)

    def _close(self, ending: Ending, parts: Parts) -> Ending:
        problem = parts.recorder.flush()
        if problem:
            parts.warn(f"the transcript could not be written: {problem}")
        outcome: Literal["ok", "error", "cancelled"]
        outcome = "cancelled" if ending.reason == "cancelled" else "error" if ending.is_error else "ok"
        parts.telemetry.end(outcome, ending.reason if ending.is_error else "", _public(ending))
        parts.output.result(ending, self._state.figures())
        self._reported = ending
        return ending

    async def _ending(self, tasks: RunTasks) -> Ending:
        self._work_task = asyncio.create_task(self._work(tasks))
        if self._cause:
            self._work_task.cancel()
        try:
            return await self._work_task
        except asyncio.CancelledError:
            if self._cause is None:  # the caller's own task was cancelled, not the run
                self._work_task.cancel()
                await tasks.close()
                raise
            return Ending(self._cause[0], self._cause[1], self._state.prose)
        except HaltError as halt:
            return Ending(halt.reason, halt.message)
        except AuthenticationError as error:
            return Ending("authentication", error.problem)
        except ProviderError as error:
            return Ending("api_error", f"[API Error: {error.problem}]")
        except Exception as error:
            return unexpected(error)

    async def _work(self, tasks: RunTasks) -> Ending:
        state, plan = self._state, self._plan
        self._parts.output.init(self._init())
        main = Conversation(state, self._registry, tasks.at(0), history=plan.history)
        text = await main.ask(await self._prompt(), images=plan.images)
        answer, finish = text, main.finish
        reminders = self._reminders()
        while state.captured is None:
            item = await tasks.next()
            if item is not None:
                tasks.show(item)
                text = await main.ask(item.text, subtype=item.subtype)
                if text.strip():  # a model may have nothing to say to a notification
                    answer, finish = text, main.finish
            elif state.contract is None:
                refused = refused_reply(finish, answer)
                if refused:
                    raise refused
                return Ending("completed", text=answer)
            elif not reminders or not state.budget.turns_left:
                raise self._missing(main.finish)
            else:
                text = await main.ask(REMINDER, reminders.pop(0), subtype="reminder")
        return Ending("structured_output", text=text, captured=state.captured)

    async def _prompt(self) -> str:
        """The prompt with what hooks add to it; HaltError where one of them does not let the run begin."""
        decision = await self._parts.hooks.prompt(self._plan.prompt)
        self._warn(decision)
        if decision.blocked:
            raise HaltError("prompt_blocked", f"A UserPromptSubmit hook ended the run: {decision.reason}")
        return "\n\n".join(filter(None, (self._plan.prompt, decision.context)))

    def _warn(self, decision: HookDecision) -> None:
        for warning in decision.warnings:
            self._parts.warn(warning)

    def _missing(self, finish: str) -> HaltError:
        """Why there is no answer that fits: the model was cut off or refused, or never called the tool."""
        state = self._state
        refused = refused_reply(finish, state.prose) if finish in ("length", "refusal") else None
        return refused or HaltError("structured_output_missing", missing_message(state.budget.turns, state.prose))

    def _reminders(self) -> list[ToolChoice]:
        """The second chances of a model that answers in prose: a word, then where possible a forced call."""
        forced: list[ToolChoice] = [Named(STRUCTURED_OUTPUT)] if self._parts.provider.forces_tools else []
        return ["auto", *forced]

    def _init(self) -> dict[str, Any]:
        from dovetail import __version__

        return {
            "cwd": str(self._plan.workspace),
            "tools": self._registry.names,
            "mcp_servers": [],
            "model": self._parts.provider.model,
            "permission_mode": self._parts.permissions.mode,
            "slash_commands": [],
            "dovetail_version": __version__,
            "agents": ["general-purpose"],
            **self._plan.init,
        }


def unexpected(error: Exception) -> Ending:
    """The end of a run by a mistake of ours, with the place where it happened."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    return Ending("internal_error", f"An unexpected error occurred: {type(error).__name__}: {error} ({place})")


def _system(plan: Plan) -> str:
    text = plan.system_prompt
    if text is None:
        text = _SYSTEM.format(workspace=plan.workspace) + (_SYSTEM_CONTRACT if plan.contract else "")
    return f"{text}\n\n{plan.append_system_prompt}" if plan.append_system_prompt else text


def _handled(history: Sequence[Turn]) -> dict[str, str]:
    """The calls of an earlier session: the same id with the same arguments is a replay, not a new call."""
    return {use.id: fingerprint(use) for turn in history if isinstance(turn, AssistantTurn) for use in turn.tool_uses}


def _public(ending: Ending) -> str:
    """The message for telemetry: never words of the model, of a service or of a tool, which may quote the payload."""
    match ending.reason:
        case "structured_output_missing":
            return "model did not produce structured output"
        case "api_error" | "authentication" | "internal_error":
            return ending.kind.error
        case _:
            return ending.message
