"""`dovetail run` from its flags to its exit code: the parts are put together, the run runs, and its end is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from dovetail.agent.contract import Contract, read_contract
from dovetail.agent.endings import CANCELLED, Ending, HaltError
from dovetail.agent.flags import Flags
from dovetail.agent.hooks import CommandHooks, HookSession, check_matchers
from dovetail.agent.loop import Limits, Parts, Plan, Run
from dovetail.agent.loop.budget import parse_count, parse_duration
from dovetail.agent.loop.nothing import NoRecorder
from dovetail.agent.loop.run import unexpected
from dovetail.agent.mcp import Servers, connect_servers, state_messages
from dovetail.agent.mentions import expand_mentions
from dovetail.agent.output import Output, Sink
from dovetail.agent.output.writers import Format
from dovetail.agent.permissions import Rules, ToolFlags
from dovetail.agent.protocols import Recorder, Tool
from dovetail.agent.providers import connect
from dovetail.agent.recording import SessionError, Sessions
from dovetail.agent.sandbox import Sandbox, SandboxChoice, SandboxError, open_sandbox
from dovetail.agent.settings import Settings, load_settings, read_mcp_config
from dovetail.agent.telemetry import telemetry_of
from dovetail.agent.tools import builtin_tools
from dovetail.agent.types import STRUCTURED_OUTPUT, AuthenticationError, ProviderOptions, ToolLimits, Turn
from dovetail.errors import DovetailError, InputError

CLOSING_S = 5.0


async def execute(flags: Flags, prompt: str) -> int:
    """Do what the flags say, print it, and return the exit code."""
    interrupt = _Interrupt()
    sink = Sink(sys.stdout.buffer)
    form: Format = flags.output_format or "text"
    with interrupt.listening():
        async with AsyncExitStack() as stack:
            try:
                plan = _Assembly(flags, prompt)
                form = plan.form
                run = await plan.assemble(stack, sink)
                interrupt.run = run
                ending = await run.execute()
            except asyncio.CancelledError:
                ending = _stillborn(Ending("cancelled", CANCELLED), form, sink)
            except HaltError as halt:
                ending = _stillborn(Ending(halt.reason, halt.message), form, sink)
            except AuthenticationError as error:
                ending = _stillborn(Ending("authentication", error.problem), form, sink)
            except SessionError as error:
                ending = _stillborn(Ending("session_error", str(error)), form, sink)
            except DovetailError as error:
                ending = _stillborn(Ending("configuration", str(error)), form, sink)
            except Exception as error:
                ending = _stillborn(unexpected(error), form, sink)
            interrupt.over = True
            await _closed(stack)
    _tell(ending, form)
    return ending.kind.exit_code


def cancelled(flags: Flags) -> int:
    """The end of a run that was interrupted before it could listen."""
    form: Format = flags.output_format or "text"
    ending = _stillborn(Ending("cancelled", CANCELLED), form, Sink(sys.stdout.buffer))
    _tell(ending, form)
    return ending.kind.exit_code


async def _closed(stack: AsyncExitStack) -> None:
    """Let go of everything, but wait for nobody longer than a moment: the result is out."""
    try:
        async with asyncio.timeout(CLOSING_S):
            await stack.aclose()
    except Exception as error:
        warn(f"Warning: while closing: {type(error).__name__}: {error}")


def warn(text: str) -> None:
    """Say something on stderr, which nobody parses."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a command line tells its user


def _stillborn(ending: Ending, form: Format, sink: Sink) -> Ending:
    """A run that never began still has its one result."""
    Output(form, sink, str(uuid.uuid4()), "").result(ending, {})
    return ending


def _tell(ending: Ending, form: Format) -> None:
    if not ending.is_error:
        return
    if form == "json":
        error = {"type": ending.kind.error, "message": ending.message, "code": ending.kind.exit_code}
        warn(json.dumps({"error": error}, indent=2, ensure_ascii=False))
    else:
        warn(ending.message)


class _Interrupt:
    """SIGINT and SIGTERM: they end the run, or what leads up to it."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.over = False
        self._task = asyncio.current_task()
        self._arrived = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen, and let in what the caller has held back."""
        loop = asyncio.get_running_loop()
        both = {signal.SIGINT, signal.SIGTERM}
        for number in both:
            loop.add_signal_handler(number, self._arrive)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
        try:
            yield
        finally:
            # What is left to do takes no time; a late signal must not spoil an end that is already told, not even while
            # the handlers change.
            signal.pthread_sigmask(signal.SIG_BLOCK, both)
            for number in both:
                loop.remove_signal_handler(number)
                signal.signal(number, lambda *_: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, both)

    def _arrive(self) -> None:
        if self.over:
            return
        if self.run is not None:
            self.run.interrupt()
        elif not self._arrived and self._task is not None:
            self._task.cancel()
        self._arrived = True


def untrusted_note(unused: Sequence[str]) -> str:
    """What the settings of the project say and nobody has vouched for."""
    return (
        f"This project is not trusted, so these of its settings are not used: {', '.join(unused)}. "
        "To use them, run `dovetail trust` in it, or pass --trust-project."
    )


def sandbox_of(choice: SandboxChoice, rules: Rules, network: bool) -> Sandbox:
    """The sandbox of the run; that there is none is told where commands can be run at all."""
    try:
        sandbox, problem = open_sandbox(choice, rules, network=network)
    except SandboxError as error:
        raise HaltError("sandbox", str(error)) from None
    if problem:
        warn(f"Warning: commands run without a sandbox, with all your rights ({problem}).")
    return sandbox


class _Assembly:
    """A run put together from flags, settings and environment; what is wrong with them is found before it runs."""

    def __init__(self, flags: Flags, prompt: str) -> None:
        self.flags = flags
        self.prompt = prompt
        launch = Path.cwd()
        self.contract = self._contract(launch)
        self.workspace = (launch / Path(flags.workspace).expanduser()).resolve()
        if not self.workspace.is_dir():
            raise InputError(f"--workspace: there is no directory {self.workspace}")
        plain = flags.bare or flags.safe_mode
        self.settings = load_settings(self.workspace, bare=plain, trust_project=flags.trust_project)
        if self.settings.unused:
            warn(untrusted_note(self.settings.unused))
        if flags.mcp_config is not None:
            servers = {**self.settings.mcp_servers, **read_mcp_config(flags.mcp_config)}
            self.settings = self.settings.model_copy(update={"mcp_servers": servers})
        self.form: Format = flags.output_format or self.settings.output.format
        self.limits = _limits(flags, self.settings)
        tool_flags = ToolFlags(
            core=flags.core_tools,
            allowed=flags.allowed_tools,
            exclude=flags.exclude_tools,
            approval_mode=flags.approval_mode,
            yolo=flags.yolo,
            bare=flags.bare,
            safe_mode=flags.safe_mode,
        )
        self.rules = Rules.of(self.settings, tool_flags, self.workspace)
        for note in self.rules.notes:
            warn(note)
        self._check_terminal()

    def _contract(self, launch: Path) -> Contract | None:
        flags = self.flags
        if flags.json_schema is None:
            return None
        contract = read_contract(
            flags.json_schema, launch, wrap_root=flags.wrap_root, allow_unknown=flags.allow_unknown_keywords
        )
        for warning in contract.warnings:
            warn(f"Warning: {warning}")
        return contract

    def _check_terminal(self) -> None:
        """A run that may not deliver its answer is not begun."""
        if self.contract is None:
            return
        decision = self.rules.registers(STRUCTURED_OUTPUT)
        if decision.verdict == "allow":
            decision = self.rules.decide(STRUCTURED_OUTPUT, {}, False)
        if decision.verdict != "allow":
            raise InputError(
                f"--json-schema needs the tool structured_output, but the rule {decision.rule!r} forbids it",
                "permissions",
                "remove the rule from permissions.deny, permissions.ask, tools.disabled or --exclude-tools",
            )

    async def assemble(self, stack: AsyncExitStack, sink: Sink) -> Run:
        """Connect to the model and to servers, open the transcript, and make the run."""
        prompt = expand_mentions(self.prompt, self.workspace, self.rules)
        provider = connect(self._provider_options())
        stack.push_async_callback(provider.close)
        recorder, history = self._session()
        servers = await self._servers(stack)
        stack.callback(recorder.close)
        tools = self._tools(servers, stack)
        session = HookSession(recorder.session_id, recorder.path, self.workspace, self.rules.mode)
        parts = Parts(
            provider=provider,
            permissions=self.rules,
            hooks=CommandHooks(self.settings, session),
            recorder=recorder,
            telemetry=telemetry_of(self.settings, recorder.session_id, provider.model),
            output=Output(self.form, sink, recorder.session_id, provider.model, self.flags.include_partial_messages),
            warn=warn,
        )
        plan = Plan(
            prompt=prompt,
            workspace=self.workspace,
            contract=self.contract,
            limits=self.limits,
            tool_limits=self._tool_limits(),
            system_prompt=self.flags.system_prompt,
            append_system_prompt=self.flags.append_system_prompt,
            history=tuple(history),
            init={"mcp_servers": state_messages(servers.states)},
        )
        return Run(plan, parts, tools)

    def _tools(self, servers: Servers, stack: AsyncExitStack) -> list[Tool]:
        """All tools there are; rules and hooks about any other are mistakes."""
        settings = self.settings.tools
        sandbox = sandbox_of(
            self.flags.sandbox or settings.sandbox, self.rules, self.flags.sandbox_network or settings.sandbox_network
        )
        stack.callback(sandbox.close)
        tools = [
            *builtin_tools(self.limits.max_subagent_depth, sandbox, settings.keep_environment),
            *servers.tools,
        ]
        names = [STRUCTURED_OUTPUT, *(tool.name for tool in tools)]
        certain = all(state.status == "connected" for state in servers.states)
        self.rules.check_names(names, certain=certain)
        check_matchers(self.settings, names, certain=certain)
        return tools

    async def _servers(self, stack: AsyncExitStack) -> Servers:
        """The tool servers of settings and flags; one that fails is a warning."""
        named = self.flags.allowed_mcp_server_names
        connected = connect_servers(
            self.settings.mcp_servers,
            self.workspace,
            allowed=named or self.settings.mcp.allowed,
            excluded=self.settings.mcp.excluded,
        )
        servers = await stack.enter_async_context(connected)
        for warning in servers.warnings:
            warn(f"Warning: {warning}")
        return servers

    def _session(self) -> tuple[Recorder, list[Turn]]:
        """The transcript to write, and the turns of the session that goes on."""
        flags, sessions, redacts = self.flags, Sessions(self.workspace), self.contract is not None
        records = self.settings.general.chat_recording if flags.chat_recording is None else flags.chat_recording
        known = sessions.find(flags.resume) if flags.resume is not None else None
        if flags.continue_:
            known = sessions.latest()
        if known is not None and not records:
            raise SessionError("a session that is not recorded cannot go on", "--no-chat-recording", "leave it out")
        if not records:
            return NoRecorder(flags.session_id or str(uuid.uuid4())), []
        if known is None:
            return sessions.new(flags.session_id, redacts=redacts), []
        copy = (flags.session_id or str(uuid.uuid4())) if flags.fork_session else None
        return sessions.resume(known, redacts=redacts, fork=copy)

    def _provider_options(self) -> ProviderOptions:
        flags, model = self.flags, self.settings.model
        return ProviderOptions(
            name=flags.provider or os.environ.get("DOVETAIL_PROVIDER") or model.provider,
            model=flags.model or os.environ.get("DOVETAIL_MODEL") or model.name,
            base_url=flags.base_url or os.environ.get("DOVETAIL_BASE_URL") or model.base_url,
            seed=flags.seed,
        )

    def _tool_limits(self) -> ToolLimits:
        seconds = self.settings.tools.shell_timeout_seconds
        return ToolLimits() if seconds is None else ToolLimits(timeout_s=seconds)


def _limits(flags: Flags, settings: Settings) -> Limits:
    model = settings.model
    parallel = os.environ.get("DOVETAIL_MAX_TOOL_CONCURRENCY", "10")
    if model.max_wall_time_seconds != -1:
        parse_duration(str(model.max_wall_time_seconds), "settings.json: model.maxWallTimeSeconds")
    return Limits(
        max_turns=_count(flags.max_session_turns, "--max-session-turns", model.max_session_turns),
        max_wall_time_s=parse_duration(flags.max_wall_time) if flags.max_wall_time else model.max_wall_time_seconds,
        max_tool_calls=_count(flags.max_tool_calls, "--max-tool-calls", model.max_tool_calls),
        max_structured_retries=_count(flags.max_structured_retries, "--max-structured-retries", 10),
        max_subagent_depth=flags.max_subagent_depth,
        max_parallel=max(1, parse_count(parallel, "DOVETAIL_MAX_TOOL_CONCURRENCY", 1000)),
        max_calls_per_prompt=model.max_tool_calls_per_turn,
    )


def _count(written: str | None, name: str, otherwise: int) -> int:
    return otherwise if written is None else parse_count(written, name)
