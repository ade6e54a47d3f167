"""Headless runs from Python: `run` and its async twin.

Everything heavy is imported when a run starts, so that the names cost nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, cast, overload

from dovetail.errors import DovetailError, InputError

if TYPE_CHECKING:
    from dovetail.agent.contract import Contract
    from dovetail.agent.loop import Limits, Run
    from dovetail.agent.permissions import Rules, ToolFlags
    from dovetail.agent.protocols import Hooks, Provider, Recorder, Tool
    from dovetail.agent.providers.catalog import Catalog
    from dovetail.agent.sandbox import SandboxChoice
    from dovetail.agent.settings import Settings
    from dovetail.agent.types import ApprovalMode, Effort, Turn

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class RunResult(Generic[T]):
    """How a run ended: `value` is the answer in the caller's type, `json` the same as plain JSON values.

    Without a schema both are None and `text` is the answer. `messages` is the event stream, `result` its last message.
    """

    value: T
    json: Any
    text: str
    reason: str
    turns: int
    session_id: str
    messages: tuple[dict[str, Any], ...] = field(repr=False, default=())

    @property
    def result(self) -> dict[str, Any]:
        """The result message, with usage, durations, denials and suppressed calls."""
        return self.messages[-1]


class RunError(DovetailError):
    """A run ended without its answer: `reason` says why in one word, `result` has all that is known about it."""

    def __init__(self, message: str, result: RunResult[Any]) -> None:
        super().__init__(message)
        self.result = result

    @property
    def reason(self) -> str:
        """The termination reason, such as "max_turns"."""
        return self.result.reason


class RunOptions(TypedDict, total=False):
    """What a run may be told besides its prompt and schema; the defaults are those of the command line.

    `settings` is what a settings file would say, hooks and rules included; files are not read. `record` keeps a
    transcript, and `session` goes on with one, by its id or title. `on_event` is called with each message of the event
    stream as it comes; `partial_messages` adds the pieces of replies.
    """

    tools: Sequence[Tool | Callable[..., Any]]
    builtin_tools: bool
    provider: str | Provider
    model: str
    base_url: str
    api_key: str
    seed: int
    workspace: str | Path
    approval_mode: ApprovalMode
    allowed_tools: Sequence[str]
    exclude_tools: Sequence[str]
    sandbox: SandboxChoice
    sandbox_network: bool
    max_turns: int
    max_wall_time_s: float
    max_tool_calls: int
    max_structured_retries: int
    max_tokens_total: int
    max_cost_usd: float
    prices: Mapping[str, Mapping[str, float | Mapping[str, float]]]
    max_output_tokens: int
    temperature: float
    effort: Effort
    timeout_s: float
    max_retries: int
    fallback_model: str
    system_prompt: str
    append_system_prompt: str
    images: Sequence[str | Path]
    add_dirs: Sequence[str | Path]
    context_files: bool
    mcp_servers: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any]
    session: str
    record: bool
    hooks: Hooks
    on_event: Callable[[dict[str, Any]], None]
    partial_messages: bool


@overload
def run(
    prompt: str, *, schema: type[T], validate: Callable[[T], Any] | None = None, **options: Unpack[RunOptions]
) -> RunResult[T]: ...


@overload
def run(
    prompt: str,
    *,
    schema: Mapping[str, Any] | None = None,
    validate: Callable[[Any], Any] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult[Any]: ...


def run(
    prompt: str,
    *,
    schema: Any = None,
    validate: Callable[[Any], Any] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult[Any]:
    """Let a model work in a directory until its answer fits `schema`, and return the answer.

    `schema` is a pydantic model, a dataclass or any other type that pydantic can describe, a JSON Schema, or None for
    an answer in prose. `validate` is called with the value; a ValueError that it raises is told to the model. `tools`
    are Python functions or Tool objects. A run that fails raises RunError. In a coroutine, await `run_async` instead.
    The other options are those of RunOptions: provider, model, workspace, approval_mode, max_turns and so on.
    """
    import asyncio  # here, because most programs that import dovetail never run anything

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run_async(prompt, schema=schema, validate=validate, **options))
    raise InputError("run was called in a coroutine", "", "use: await dovetail.run_async(...)")


@overload
async def run_async(
    prompt: str, *, schema: type[T], validate: Callable[[T], Any] | None = None, **options: Unpack[RunOptions]
) -> RunResult[T]: ...


@overload
async def run_async(
    prompt: str,
    *,
    schema: Mapping[str, Any] | None = None,
    validate: Callable[[Any], Any] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult[Any]: ...


async def run_async(
    prompt: str,
    *,
    schema: Any = None,
    validate: Callable[[Any], Any] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult[Any]:
    """Run an agent as `run` does, inside a coroutine; cancelling the coroutine ends the run."""
    contract, convert = _contract(schema, validate)
    async with AsyncExitStack() as stack:
        run = await _assembled(prompt, contract, options, stack)
        ending = await run.execute()
    captured = ending.captured
    result = RunResult(
        value=convert(captured.value) if captured else None,
        json=captured.value if captured else None,
        text=ending.text,
        reason=ending.reason,
        turns=run.figures["num_turns"],
        session_id=run.messages[0]["session_id"],
        messages=tuple(run.messages),
    )
    if ending.is_error:
        raise RunError(ending.message, result)
    return result


async def run_events(
    prompt: str,
    *,
    schema: Any = None,
    validate: Callable[[Any], Any] | None = None,
    **options: Unpack[RunOptions],
) -> AsyncIterator[dict[str, Any]]:
    """The messages of a run as they come; the last one is the result, of a run that failed, too.

    They are those of `--output-format stream-json`, and `dovetail.agent.output.event_schema()` describes them. Leaving
    the loop early ends the run.
    """
    import asyncio

    contract, _ = _contract(schema, validate)
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    also = options.get("on_event")

    def hear(event: dict[str, Any]) -> None:
        if also is not None:
            also(event)
        events.put_nowait(event)

    async with AsyncExitStack() as stack:
        run = await _assembled(prompt, contract, {**options, "on_event": hear}, stack)
        running = asyncio.create_task(run.execute())
        try:
            while True:
                getting = asyncio.ensure_future(events.get())
                await asyncio.wait((getting, running), return_when=asyncio.FIRST_COMPLETED)
                if not getting.done() and events.empty():
                    getting.cancel()
                    break
                yield await getting
        finally:
            run.interrupt()
            await running


def _contract(schema: Any, validate: Callable[[Any], Any] | None) -> tuple[Contract | None, Callable[[Any], Any]]:
    """The contract of a schema or type, and the way from a JSON value to the caller's type."""
    from dovetail.agent.contract import make_contract
    from dovetail.agent.contract.strict import DRAFT_2020_12

    if schema is None:
        return None, lambda value: value
    if isinstance(schema, Mapping):
        return make_contract(schema, wrap_root=True, validate=validate), lambda value: value
    from dovetail.formats.python_types import schema_of

    typed = schema_of(schema)

    def check(value: Any) -> None:
        read = typed.convert(value)
        if validate is not None:
            validate(read)

    document = {"$schema": DRAFT_2020_12, **typed.schema}
    return make_contract(document, wrap_root=True, allow_unknown=True, validate=check), typed.convert


async def _assembled(prompt: str, contract: Contract | None, options: RunOptions, stack: AsyncExitStack) -> Run:
    from dovetail.agent.assembling import Assembly
    from dovetail.agent.images import read_image
    from dovetail.agent.loop import Plan
    from dovetail.agent.options import check_prices
    from dovetail.agent.output import Output, Sink
    from dovetail.agent.permissions import Rules

    unknown = options.keys() - RunOptions.__optional_keys__
    if unknown:
        known = ", ".join(sorted(RunOptions.__optional_keys__))
        raise InputError(f"run has no option {min(unknown)!r}", "", f"use one of {known}")
    workspace = Path(options.get("workspace", ".")).resolve()
    if not workspace.is_dir():
        raise InputError(f"there is no directory {workspace}", "workspace", "give a directory that exists")
    settings, limits, catalog = _settings(options), _limits(options), _catalog(options)
    given = _tools(options)
    provider = _provider(options, stack)
    check_prices(limits, catalog, provider.model)
    rules = Rules.of(settings, _tool_flags(options, given), workspace)
    recorder, history = _session(options, workspace, contract)
    stack.callback(recorder.close)
    servers = await _servers(settings, workspace, stack)
    built_in = _builtin(options, rules, stack) if options.get("builtin_tools", True) else []
    plan = Plan(
        prompt,
        workspace,
        contract,
        limits,
        images=tuple(read_image(Path(path)) for path in options.get("images", ())),
        system_prompt=options.get("system_prompt"),
        append_system_prompt=options.get("append_system_prompt", ""),
        history=history,
        catalog=catalog,
    )
    return Assembly(
        plan=plan,
        provider=provider,
        settings=settings,
        rules=rules,
        recorder=recorder,
        output=Output(
            "json",
            Sink(None),
            recorder.session_id,
            provider.model,
            options.get("partial_messages", False),
            options.get("on_event", lambda _: None),
        ),
        tools=[*given, *built_in, *servers],
        reads_context_files=bool(options.get("context_files")),
        hooks=options.get("hooks"),
    ).make()


def _settings(options: RunOptions) -> Settings:
    """The settings of a run: those that are given, with its folders and servers."""
    from dovetail.agent.settings import settings_of

    given = dict(options.get("settings", {}))
    if "add_dirs" in options:
        folders = [str(Path(folder).resolve()) for folder in options["add_dirs"]]
        given["context"] = {**given.get("context", {}), "includeDirectories": folders}
    if "mcp_servers" in options:
        given["mcpServers"] = {name: dict(server) for name, server in options["mcp_servers"].items()}
    return settings_of(given)


def _session(options: RunOptions, workspace: Path, contract: Contract | None) -> tuple[Recorder, tuple[Turn, ...]]:
    """The transcript of the run, where one is kept, and what was said before."""
    import uuid

    from dovetail.agent.loop.null_parts import NoRecorder
    from dovetail.agent.recording import Sessions

    sessions, redacts = Sessions(workspace), contract is not None
    if "session" in options:
        transcript, history = sessions.resume(sessions.find(options["session"]), redacts=redacts)
        return transcript, tuple(history)
    if options.get("record", False):
        return sessions.new(redacts=redacts), ()
    return NoRecorder(str(uuid.uuid4())), ()


async def _servers(settings: Settings, workspace: Path, stack: AsyncExitStack) -> Sequence[Tool]:
    if not settings.mcp_servers:
        return ()
    from dovetail.agent.mcp import connect_servers

    connected = connect_servers(
        settings.mcp_servers, workspace, allowed=settings.mcp.allowed, excluded=settings.mcp.excluded
    )
    servers = await stack.enter_async_context(connected)
    failed = [state for state in servers.states if state.status == "failed"]
    if failed:  # nobody reads a warning here
        raise InputError(f"the MCP server {failed[0].name!r} cannot be used: {failed[0].problem}", "mcp_servers")
    return servers.tools


def _catalog(options: RunOptions) -> Catalog:
    from dovetail.agent.providers.catalog import Catalog, rows_of

    return Catalog(rows_of(options.get("prices", {}), "prices"))


def _builtin(options: RunOptions, rules: Rules, stack: AsyncExitStack) -> list[Tool]:
    from dovetail.agent.sandbox import open_sandbox
    from dovetail.agent.tools import builtin_tools

    choice = options.get("sandbox", "auto")
    sandbox, _ = open_sandbox(choice, rules, network=options.get("sandbox_network", False))
    stack.callback(sandbox.close)
    return builtin_tools(sandbox=sandbox)


def _tools(options: RunOptions) -> list[Tool]:
    from dovetail.agent.tools import function_tool

    return [
        cast("Tool", tool) if hasattr(tool, "parameters") else function_tool(tool) for tool in options.get("tools", ())
    ]


def _tool_flags(options: RunOptions, given: Sequence[Tool]) -> ToolFlags:
    from dovetail.agent.permissions import ToolFlags

    return ToolFlags(
        # The caller's own tools need no further permission than having been given.
        allowed=(*options.get("allowed_tools", ()), *(tool.name for tool in given)),
        exclude=tuple(options.get("exclude_tools", ())),
        approval_mode=options.get("approval_mode"),
    )


def _provider(options: RunOptions, stack: AsyncExitStack) -> Provider:
    from dovetail.agent.providers import connect
    from dovetail.agent.types import ProviderOptions

    chosen = options.get("provider", "")
    if not isinstance(chosen, str):
        return chosen
    provider = connect(
        ProviderOptions(
            name=chosen,
            model=options.get("model", ""),
            base_url=options.get("base_url", ""),
            api_key=options.get("api_key", ""),
            seed=options.get("seed"),
            timeout_s=options.get("timeout_s", 600.0),
            max_retries=options.get("max_retries", 5),
            max_output_tokens=options.get("max_output_tokens"),
            temperature=options.get("temperature"),
            effort=options.get("effort"),
            fallback_model=options.get("fallback_model", ""),
        )
    )
    stack.push_async_callback(provider.close)
    return provider


def _limits(options: RunOptions) -> Limits:
    from dovetail.agent.loop import Limits

    return Limits(
        max_turns=options.get("max_turns", -1),
        max_wall_time_s=options.get("max_wall_time_s", -1),
        max_tool_calls=options.get("max_tool_calls", -1),
        max_structured_retries=options.get("max_structured_retries", 10),
        max_tokens_total=options.get("max_tokens_total", -1),
        max_cost_usd=options.get("max_cost_usd", -1),
    )
