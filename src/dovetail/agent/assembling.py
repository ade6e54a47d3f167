"""A run, put together of its parts: the same for the command line and for Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dovetail.agent.context_files import context_files, instructions
from dovetail.agent.hooks import CommandHooks, HookSession, check_matchers
from dovetail.agent.loop import Parts, Plan, Run
from dovetail.agent.loop.null_parts import NoTelemetry
from dovetail.agent.output import Output
from dovetail.agent.permissions import Rules
from dovetail.agent.protocols import Hooks, Provider, Recorder, Telemetry, Tool
from dovetail.agent.settings import Settings, dovetail_home
from dovetail.agent.types import STRUCTURED_OUTPUT


def _say_nothing(_: str) -> None:
    """Keep quiet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What a run is made of; `make` checks that it fits together.

    `tools` are all that there are, unless `knows_all_tools` is False: then a server failed, and its tools are missing.
    """

    plan: Plan
    provider: Provider
    settings: Settings
    rules: Rules
    recorder: Recorder
    output: Output
    tools: Sequence[Tool]
    knows_all_tools: bool = True
    reads_context_files: bool = False
    hooks: Hooks | None = None
    telemetry: Telemetry | None = None
    warn: Callable[[str], None] = _say_nothing
    note: Callable[[str], None] = _say_nothing

    def make(self) -> Run:
        """The run."""
        recorder, rules, plan = self.recorder, self.rules, self.plan
        # Rules and hooks about a tool that there is not are mistakes.
        names = [STRUCTURED_OUTPUT, *(tool.name for tool in self.tools)]
        rules.check_names(names, certain=self.knows_all_tools)
        check_matchers(self.settings, names, certain=self.knows_all_tools)
        session = HookSession(recorder.session_id, recorder.path, plan.workspace, rules.mode)
        parts = Parts(
            provider=self.provider,
            permissions=rules,
            hooks=self.hooks or CommandHooks(self.settings, session),
            recorder=recorder,
            telemetry=self.telemetry or NoTelemetry(),
            output=self.output,
            warn=self.warn,
            note=self.note,
        )
        files = context_files(plan.workspace, dovetail_home(), rules) if self.reads_context_files else {}
        system_prompt = "\n\n".join(filter(None, (instructions(files), plan.append_system_prompt)))
        plan = replace(plan, append_system_prompt=system_prompt, init={**plan.init, "context_files": list(files)})
        return Run(plan, parts, self.tools)
