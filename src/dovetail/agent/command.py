"""`dovetail run` from its flags to its exit code: the parts are put together, the run runs, and its end is told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

from dovetail.agent.assembling import Assembly
from dovetail.agent.contract import Contract, read_contract
from dovetail.agent.exit_reasons import CANCELLED, Ending, HaltError
from dovetail.agent.exporting import close_in_time, export
from dovetail.agent.file_mentions import expand_mentions
from dovetail.agent.flags import ConflictError, Flags, check_names
from dovetail.agent.loop import Plan, Run
from dovetail.agent.loop.budget import UNLIMITED
from dovetail.agent.loop.null_parts import NoRecorder
from dovetail.agent.loop.run import unexpected
from dovetail.agent.mcp import Servers, connect_servers, state_messages
from dovetail.agent.options import catalog_of, check_prices, limits_of, provider_options
from dovetail.agent.output import Output, Sink, answer_of
from dovetail.agent.output.writers import Format, harmless
from dovetail.agent.permissions import Rules, ToolFlags
from dovetail.agent.prompt import Prompt, read_prompt
from dovetail.agent.protocols import Recorder, Tool
from dovetail.agent.providers import connect
from dovetail.agent.recording import SessionError, Sessions
from dovetail.agent.sandbox import Sandbox, SandboxChoice, SandboxError, open_sandbox
from dovetail.agent.settings import Settings, load_settings, read_mcp_config
from dovetail.agent.stopping import Stop
from dovetail.agent.telemetry import telemetry_of
from dovetail.agent.tools import builtin_tools
from dovetail.agent.tools.text import write_whole
from dovetail.agent.types import STRUCTURED_OUTPUT, AuthenticationError, ToolError, ToolLimits, Turn
from dovetail.errors import DovetailError, InputError

CLOSING_S = 2.0


async def execute(flags: Flags, began: float) -> int:
    """Do what the flags say, print it, and return the exit code; ConflictError where there is nothing to do.

    `began` is when the command did, on the monotonic clock.
    """
    report = _Report(flags)
    stop = Stop(report.tell, report.lock.locked, began)
    with stop.listening():
        async with AsyncExitStack() as stack:
            ending = await _ended(flags, report, stop, stack)
            stop.reported(report.tell(ending))
            await _closed(stack)
            await stop.let_go()
    return stop.code


async def _ended(flags: Flags, report: _Report, stop: Stop, stack: AsyncExitStack) -> Ending:
    """Run to the one ending."""
    try:
        report.prepare()
        plan = _Assembly(flags)
        report.form = plan.form
        stop.limit(plan.limits.max_wall_time_s)
        prompt = await read_prompt(flags, sys.stdin, plan.warn)
        run = await plan.assemble(prompt, stack, report.sink)
        report.run = run
        stop.begin(run)
        return await run.execute()
    except ConflictError:
        raise
    except asyncio.CancelledError:
        return stop.cause
    except HaltError as halt:
        return Ending(halt.reason, halt.message)
    except AuthenticationError as error:
        return Ending("authentication", error.problem)
    except SessionError as error:
        return Ending("session_error", str(error))
    except DovetailError as error:
        return Ending("configuration", str(error))
    except Exception as error:
        return unexpected(error)


class _Report:
    """What the user has been told: exactly one result, and on stderr why it is none."""

    def __init__(self, flags: Flags) -> None:
        self.form: Format = flags.output_format or "text"
        self.sink = Sink(sys.stdout.buffer) if sys.stdout else Sink(None, "standard output is closed")
        self.run: Run | None = None
        self.lock = threading.Lock()
        self._code: int | None = None
        self._file = None if flags.output_file is None else Path(os.path.expanduser(flags.output_file))
        self._is_special = False

    def prepare(self) -> None:
        """Make sure that the answer can be written, and that what an earlier run wrote is not taken for it."""
        if self._file is None:
            return
        self._file = _here() / self._file
        try:
            if self._file.is_dir() or not self._file.parent.is_dir():
                raise InputError(
                    f"--output-file: {self._file} cannot be a file", "", "name a file in a folder that exists"
                )
            # Found out now: commands of the run may put links where they can write.
            self._is_special = self._file.exists() and not self._file.is_file()
            self._file = self._file.parent.resolve() / self._file.name
            if self._file.is_file():
                self._file.unlink()
        except OSError as error:
            raise InputError(f"--output-file: {error.strerror}", "", "name another file") from None

    def tell(self, ending: Ending) -> int:
        """Tell how it ended, and return the exit code; what never began has its one result all the same.

        The first ending is the one that counts: whoever comes later, from another thread, waits for it to be told.
        """
        with self.lock:
            self._code = self._tell(ending) if self._code is None else self._code
            return self._code

    def _tell(self, ending: Ending) -> int:
        if self.run is None:
            Output(self.form, self.sink, str(uuid.uuid4()), "").result(ending, {})
        else:
            ending = self.run.cut_short(ending)
        problem = "" if ending.is_error else self.sink.problem or self._keep(ending)
        if problem:
            ending = Ending("output_error", f"The answer could not be written: {problem}.")
        if ending.is_error:
            self._explain(ending)
        return ending.kind.exit_code

    def _keep(self, ending: Ending) -> str:
        """Write the answer to the file that it shall be in; the problem in words."""
        if self._file is None:
            return ""
        try:
            data = f"{answer_of(ending)}\n".encode("utf-8", "replace")
            if self._is_special and not self._file.is_file():  # a pipe or a device
                self._file.write_bytes(data)
                return ""
            if self._file.is_symlink():
                self._file.unlink()
            write_whole(self._file, data)
        except (OSError, ToolError) as error:
            return f"{self._file}: {getattr(error, 'strerror', None) or error}"
        return ""

    def _explain(self, ending: Ending) -> None:
        if self.form == "json":
            error = {"type": ending.kind.error, "message": ending.message, "code": ending.kind.exit_code}
            warn(json.dumps({"error": error}, indent=2, ensure_ascii=False))
        else:
            warn(ending.message)


def cancelled(flags: Flags) -> int:
    """The end of a run that was interrupted before it could listen."""
    ending = Ending("cancelled", CANCELLED)
    return _Report(flags).tell(ending)


async def _closed(stack: AsyncExitStack) -> None:
    """Let go of everything, but wait for nobody longer than a moment: the result is out."""
    try:
        async with asyncio.timeout(CLOSING_S):
            await stack.aclose()
    except Exception as error:
        warn(f"Warning: while closing: {type(error).__name__}: {error}")


def warn(text: str) -> None:
    """Say something on stderr, which nobody parses."""
    with suppress(OSError, ValueError):  # a full disk, or nobody who listens: no reason to end a run
        print(harmless(text), file=sys.stderr, flush=True)  # noqa: T201 - a command line tells its user


def show_progress(share: float) -> None:
    """Show on stderr how much of a model is loaded."""
    with suppress(OSError, ValueError):
        end = "\n" if share >= 1 else ""
        print(f"\rloading the model {share:4.0%}", end=end, file=sys.stderr, flush=True)  # noqa: T201


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


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InputError("the directory in which the command was started is gone", "", "start it in another") from None


class _Assembly:
    """A run put together from flags, settings and environment; what is wrong with them is found before it runs."""

    def __init__(self, flags: Flags) -> None:
        check_names(flags)
        self.flags = flags
        self.warn = _say_nothing if flags.quiet else warn
        launch = _here()
        self.contract = self._contract(launch)
        self.workspace = _folder(launch, flags.workspace, "--workspace")
        plain = flags.bare or flags.safe_mode
        self.settings = load_settings(self.workspace, bare=plain, trust_project=flags.trust_project)
        if self.settings.unused:
            self.warn(untrusted_note(self.settings.unused))
        if flags.mcp_config is not None:
            servers = {**self.settings.mcp_servers, **read_mcp_config(flags.mcp_config)}
            self.settings = self.settings.model_copy(update={"mcp_servers": servers})
        if flags.add_dir:
            self.settings = _with_folders(self.settings, launch, flags.add_dir)
        self.form: Format = flags.output_format or self.settings.output.format
        self.limits = limits_of(flags, self.settings)
        self.catalog = catalog_of(flags, self.settings)
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
            self.warn(note)
        self._check_terminal()

    def _contract(self, launch: Path) -> Contract | None:
        flags = self.flags
        if flags.json_schema is None:
            return None
        contract = read_contract(
            flags.json_schema, launch, wrap_root=flags.wrap_root, allow_unknown=flags.allow_unknown_keywords
        )
        for warning in contract.warnings:
            self.warn(f"Warning: {warning}")
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

    async def assemble(self, given: Prompt, stack: AsyncExitStack, sink: Sink) -> Run:
        """Connect to the model and to servers, open the transcript, and make the run."""
        typed, images = expand_mentions(given.typed, self.workspace, self.rules)
        shown = sys.stderr.isatty() and not self.flags.quiet
        options = replace(
            provider_options(self.flags, self.settings), tell=self.warn, progress=show_progress if shown else None
        )
        provider = connect(options)
        stack.push_async_callback(provider.close)
        check_prices(self.limits, self.catalog, provider.model, options.fallback_model)
        if self.settings.telemetry.enabled:
            stack.push_async_callback(close_in_time, export(self.warn))
        recorder, history = self._session()
        stack.callback(recorder.close)
        servers = await self._servers(stack)
        plan = Plan(
            prompt=given.with_typed(typed),
            images=images,
            workspace=self.workspace,
            contract=self.contract,
            limits=replace(self.limits, max_wall_time_s=UNLIMITED),  # the whole command is timed, not only its run
            tool_limits=self._tool_limits(),
            system_prompt=self.flags.system_prompt,
            append_system_prompt=self.flags.append_system_prompt,
            history=tuple(history),
            catalog=self.catalog,
            context_window=self.settings.model.context_window,
            init={"mcp_servers": state_messages(servers.states)},
        )
        return Assembly(
            plan=plan,
            provider=provider,
            settings=self.settings,
            rules=self.rules,
            recorder=recorder,
            output=Output(self.form, sink, recorder.session_id, provider.model, self.flags.include_partial_messages),
            tools=self._tools(servers, stack),
            knows_all_tools=all(state.status == "connected" for state in servers.states),
            reads_context_files=self._reads_context_files(),
            telemetry=telemetry_of(self.settings, recorder.session_id, provider.model),
            warn=self.warn,
            note=warn if self.flags.verbose or (sys.stderr.isatty() and not self.flags.quiet) else _say_nothing,
        ).make()

    def _tools(self, servers: Servers, stack: AsyncExitStack) -> list[Tool]:
        """All tools there are."""
        settings = self.settings.tools
        sandbox = sandbox_of(
            self.flags.sandbox or settings.sandbox, self.rules, self.flags.sandbox_network or settings.sandbox_network
        )
        stack.callback(sandbox.close)
        return [*builtin_tools(self.limits.max_subagent_depth, sandbox, settings.keep_environment), *servers.tools]

    def _reads_context_files(self) -> bool:
        flags, wanted = self.flags, self.settings.context.files
        return (
            not flags.bare and not flags.safe_mode and (wanted if flags.context_files is None else flags.context_files)
        )

    async def _servers(self, stack: AsyncExitStack) -> Servers:
        """The tool servers of settings and flags; one that fails is a warning."""
        named = self.flags.allowed_mcp_server_names
        connected = connect_servers(
            self.settings.mcp_servers,
            self.workspace,
            allowed=named or self.settings.mcp.allowed,
            excluded=self.settings.mcp.excluded,
            warn=self.warn,
        )
        servers = await stack.enter_async_context(connected)
        for warning in servers.warnings:
            self.warn(f"Warning: {warning}")
        return servers

    def _session(self) -> tuple[Recorder, list[Turn]]:
        """The transcript to write, and the turns of the session that goes on."""
        flags, sessions = self.flags, Sessions(self.workspace)
        redacts, keeps = self.contract is not None, self.flags.keep_answer or self.settings.general.keep_answers
        records = self.settings.general.chat_recording if flags.chat_recording is None else flags.chat_recording
        known = sessions.find(flags.resume) if flags.resume is not None else None
        if flags.continue_:
            known = sessions.latest()
        if known is not None and not records:
            raise SessionError("a session that is not recorded cannot go on", "--no-chat-recording", "leave it out")
        if not records:
            return NoRecorder(flags.session_id or str(uuid.uuid4())), []
        if known is None:
            return sessions.new(flags.session_id, redacts=redacts, keeps_answers=keeps), []
        copy = (flags.session_id or str(uuid.uuid4())) if flags.fork_session else None
        return sessions.resume(known, redacts=redacts, keeps_answers=keeps, fork=copy)

    def _tool_limits(self) -> ToolLimits:
        tools = self.settings.tools
        limits = ToolLimits(max_output_chars=tools.max_output_chars)
        return limits if tools.shell_timeout_seconds is None else replace(limits, timeout_s=tools.shell_timeout_seconds)


def _folder(launch: Path, name: str, flag: str) -> Path:
    """The folder that a flag names."""
    folder = launch / os.path.expanduser(name)
    try:
        if folder.is_dir():
            return folder.resolve()
    except (OSError, ValueError):  # no file can have such a name
        pass
    raise InputError(f"{flag}: there is no directory {str(folder)[:1000]}")


def _with_folders(settings: Settings, launch: Path, names: Sequence[str]) -> Settings:
    """The settings with more folders to work in, named from the launch directory."""
    folders = [_folder(launch, name, "--add-dir") for name in names]
    known = settings.context.include_directories
    context = settings.context.model_copy(update={"include_directories": (*known, *map(str, folders))})
    return settings.model_copy(update={"context": context})


def _say_nothing(_: str) -> None:
    """Keep quiet."""
