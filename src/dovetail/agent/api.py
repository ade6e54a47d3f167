"""Headless runs from Python: `run` and its async twin.

Everything heavy is imported when a run starts, so that the names cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, cast, overload

from dovetail.errors import DovetailError, InputError

if TYPE_CHECKING:
    from dovetail.agent.contract import Contract
    from dovetail.agent.loop import Limits, Run
    from dovetail.agent.permissions import Rules, ToolFlags
    from dovetail.agent.protocols import Hooks, Provider, Tool
    from dovetail.agent.sandbox import SandboxChoice
    from dovetail.agent.types import ApprovalMode

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
    """What a run may be told besides its prompt and schema; the defaults are those of the command line."""

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
    system_prompt: str
    hooks: Hooks


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
    """The same as `run`, for coroutines; cancelling it ends the run."""
    unknown = options.keys() - RunOptions.__optional_keys__
    if unknown:
        known = ", ".join(sorted(RunOptions.__optional_keys__))
        raise InputError(f"run has no option {min(unknown)!r}", "", f"use one of {known}")
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


def _contract(schema: Any, validate: Callable[[Any], Any] | None) -> tuple[Contract | None, Callable[[Any], Any]]:
    """The contract of a schema or type, and the way from a JSON value to the caller's type."""
    from dovetail.agent.contract import make_contract
    from dovetail.agent.contract.strict import DRAFT_2020_12

    if schema is None:
        return None, lambda value: value
    if isinstance(schema, Mapping):
        return make_contract(schema, wrap_root=True, validate=validate), lambda value: value
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
        document = {"$schema": DRAFT_2020_12, **adapter.json_schema()}
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise InputError(
            f"{schema!r} is no schema: {error}", "schema", "give a pydantic model, a dataclass, a type or a JSON Schema"
        ) from None

    def check(value: Any) -> None:
        try:
            typed = adapter.validate_python(value)
        except ValidationError as error:
            problems = (f"{'/'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False))
            raise ValueError("; ".join(problems)) from None
        if validate is not None:
            validate(typed)

    contract = make_contract(document, wrap_root=True, allow_unknown=True, validate=check)
    return contract, adapter.validate_python


async def _assembled(prompt: str, contract: Contract | None, options: RunOptions, stack: AsyncExitStack) -> Run:
    import uuid

    from dovetail.agent.loop import Parts, Plan, Run
    from dovetail.agent.loop.nothing import NoHooks, NoRecorder, NoTelemetry
    from dovetail.agent.output import Output, Sink
    from dovetail.agent.permissions import Rules
    from dovetail.agent.settings import Settings

    workspace = Path(options.get("workspace", ".")).resolve()
    if not workspace.is_dir():
        raise InputError(f"there is no directory {workspace}", "workspace", "give a directory that exists")
    given = _tools(options)
    provider = _provider(options, stack)
    session_id = str(uuid.uuid4())
    rules = Rules.of(Settings(), _tool_flags(options, given), workspace)
    tools = [*given, *(_builtin(options, rules, stack) if options.get("builtin_tools", True) else [])]
    rules.check_names([tool.name for tool in tools])
    parts = Parts(
        provider=provider,
        permissions=rules,
        hooks=options.get("hooks") or NoHooks(),
        recorder=NoRecorder(session_id),
        telemetry=NoTelemetry(),
        output=Output("json", Sink(None), session_id, provider.model),
    )
    plan = Plan(prompt, workspace, contract, _limits(options), system_prompt=options.get("system_prompt"))
    return Run(plan, parts, tools)


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
    )
