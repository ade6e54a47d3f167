"""Tools of MCP servers, over pipes and streamable HTTP, with the official SDK.

async with connect_servers(settings.mcp_servers, workspace) as servers:
    servers.tools, servers.states

A server that cannot be reached is a warning, not the end of the run. No server can take the name of a built-in tool or
pose as another server: such a tool is called mcp__<server>__<tool>.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from dovetail.agent.protocols import ToolContext
from dovetail.agent.settings import ServerSettings, SettingsError, server_slug
from dovetail.agent.tools import builtin_tools
from dovetail.agent.tools.processes import MARK, kill_marked, new_mark, to_the_end
from dovetail.agent.tools.shell import Capped
from dovetail.agent.types import Schema, ToolError, ToolOutput
from dovetail.extras import install
from dovetail.messages import to_json

if TYPE_CHECKING:
    from mcp import Client, Tool

CONNECT_S = 20.0
# How long a server may take before the user is told what the run waits for, and how long to end by itself.
PATIENCE_S = 2.0
CLOSE_S = 0.5
MAX_TOOLS = 1000
MAX_PAGES = 100
MAX_SCHEMA_BYTES = 256 << 10
MAX_DESCRIPTION = 8192
# The longest name that every provider takes.
MAX_NAME = 64

RESERVED = frozenset(tool.name for tool in builtin_tools()) | {"tool_search"}


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of a server under the name that the model knows it by."""

    name: str
    description: str
    parameters: Schema
    read_only: bool
    mcp_server: str
    remote_name: str
    timeout_s: float
    client: Client

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Call the server; a call that takes too long or is cancelled is given up."""

        async def show(progress: float, total: float | None, message: str | None) -> None:
            context.progress({"progress": progress, "total": total, "message": message})

        call = asyncio.ensure_future(self.client.call_tool(self.remote_name, dict(args), progress_callback=show))
        cancelled = asyncio.ensure_future(context.cancel.wait())
        try:
            await asyncio.wait((call, cancelled), timeout=self.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise ToolError("cancelled" if cancelled.done() else f"no answer within {self.timeout_s:g} s")
            result = call.result()
        except ToolError:
            raise
        except Exception as error:  # whatever the server or its connection did, the model is told and the run goes on
            raise ToolError(f"the server {self.mcp_server} failed: {_leaf(error)}") from error
        finally:
            await _dropped(call, cancelled)
        text = Capped(context.limits.max_output_bytes)
        text.feed(_text(result).encode("utf-8", "replace"))
        return ToolOutput(text.text(), is_error=bool(result.is_error))


@dataclass(frozen=True, slots=True)
class ServerState:
    """How a server is doing, as the first message of a run tells it."""

    name: str
    status: Literal["connected", "failed"]
    problem: str = ""
    tools: tuple[McpTool, ...] = ()


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a run."""

    states: tuple[ServerState, ...] = ()

    @property
    def tools(self) -> list[McpTool]:
        """All tools of all servers."""
        return [tool for state in self.states for tool in state.tools]

    @property
    def warnings(self) -> list[str]:
        """What could not be used, for stderr."""
        return [f"MCP server {state.name!r}: {state.problem}" for state in self.states if state.problem]


@asynccontextmanager
async def connect_servers(
    configs: Mapping[str, ServerSettings],
    workspace: Path,
    *,
    allowed: Collection[str] | None = None,
    excluded: Collection[str] = (),
    reserved: Collection[str] = RESERVED,
    warn: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Servers]:
    """Connect to the servers, side by side, and close them all at the end, whatever ends it.

    `warn` is told which servers are slow to answer.
    """
    chosen = {
        name: config
        for name, config in configs.items()
        if (allowed is None or name in allowed) and name not in excluded
    }
    connections = [_Connection(name, config, workspace, reserved) for name, config in chosen.items()]
    if connections:
        _require_sdk()

    def tell() -> None:
        for connection in connections:
            if not connection.is_open:
                warn(f"Waiting for the MCP server {connection.name!r}, up to {connection.limit_s:g} s.")

    notice = asyncio.get_running_loop().call_later(PATIENCE_S, tell)
    try:
        states = await asyncio.gather(*(connection.open() for connection in connections))
        notice.cancel()
        yield Servers(tuple(states))
    finally:
        notice.cancel()
        await to_the_end(asyncio.gather(*(connection.close() for connection in connections)))


class _Connection:
    """One server, which a task of its own opens and closes: the SDK wants both to happen in the same task."""

    def __init__(self, name: str, config: ServerSettings, workspace: Path, reserved: Collection[str]) -> None:
        self.name = name
        self.is_open = False
        self._config = config
        self._workspace = workspace
        self._reserved = reserved
        self._mark = new_mark()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def limit_s(self) -> float:
        """How long the server may take to answer."""
        return CONNECT_S if self._config.connect_timeout is None else self._config.connect_timeout / 1000

    async def open(self) -> ServerState:
        ready: asyncio.Future[ServerState] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._own(ready))
        state = await asyncio.shield(ready)
        self.is_open = True
        return state

    async def close(self) -> None:
        """Let the server end by itself, if it ever answered, and then end it: its pipes close, and so does the SDK."""
        self._stop.set()
        if self._task is None:
            return
        if self.is_open:
            await asyncio.wait((self._task,), timeout=CLOSE_S)
        await kill_marked(self._mark)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=CLOSE_S)

    async def _own(self, ready: asyncio.Future[ServerState]) -> None:
        with _errors_file() as errors:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(self.limit_s):
                        client = await _open_client(self._config, self._workspace, errors, self._mark, stack)
                        state = await self._state(client)
                    ready.set_result(state)
                    await self._stop.wait()
            except Exception as error:  # a server that fails is told about and done without
                if not ready.done():
                    late = isinstance(error, TimeoutError)
                    problem = f"no answer within {self.limit_s:g} s" if late else _leaf(error)
                    ready.set_result(ServerState(self.name, "failed", problem + _tail(errors)))
            finally:
                await kill_marked(self._mark)  # the SDK ends the server and its group, but not who left it
                if not ready.done():
                    ready.set_result(ServerState(self.name, "failed", "the run ended while it was being connected"))

    async def _state(self, client: Client) -> ServerState:
        tools: list[McpTool] = []
        problems: list[str] = []
        for offered in await _list(client):
            if self._leaves_out(offered.name):
                continue
            size = len(to_json(offered.input_schema))
            if size > MAX_SCHEMA_BYTES:
                problems.append(f"the schema of its tool {offered.name[:80]!r} has {size} bytes and is not used")
            else:
                tools.append(self._tool(offered, client))
        return ServerState(self.name, "connected", "; ".join(problems), tuple(tools))

    def _leaves_out(self, name: str) -> bool:
        wanted = self._config.include_tools
        return name in self._config.exclude_tools or (wanted is not None and name not in wanted)

    def _tool(self, offered: Tool, client: Client) -> McpTool:
        hint = offered.annotations is not None and offered.annotations.read_only_hint is True
        schema = offered.input_schema
        return McpTool(
            name=tool_name(self.name, offered.name, self._reserved),
            description=(offered.description or offered.title or offered.name)[:MAX_DESCRIPTION],
            parameters=schema if schema.get("type") == "object" else {**schema, "type": "object"},
            # What a server says of itself counts only where the user trusts it.
            read_only=hint and self._config.trust,
            mcp_server=server_slug(self.name),
            remote_name=offered.name,
            timeout_s=self._config.timeout / 1000,
            client=client,
        )


def tool_name(server: str, name: str, reserved: Collection[str] = RESERVED) -> str:
    """The name of a server's tool: its own, unless that is taken, is no name for a provider, or claims a server."""
    slug = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if slug in reserved or slug.startswith("mcp__") or not slug:
        slug = f"mcp__{server_slug(server)}__{slug or 'tool'}"
    if len(slug) <= MAX_NAME:
        return slug
    # Two long names that begin alike stay two names.
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[: MAX_NAME - 9]}_{digest}"


async def _open_client(
    config: ServerSettings, workspace: Path, errors: IO[str], mark: str, stack: AsyncExitStack
) -> Client:
    from mcp import Client, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    transport: Any
    if config.address:
        http = await stack.enter_async_context(create_mcp_http_client(headers=config.headers))
        transport = streamable_http_client(config.address, http_client=http)
    elif config.command:
        cwd = workspace / config.cwd if config.cwd else workspace
        environment = {**config.env, MARK: mark}
        server = StdioServerParameters(command=config.command, args=list(config.args), env=environment, cwd=cwd)
        transport = stdio_client(server, errors)  # type: ignore[arg-type] # any file with a descriptor will do
    else:
        raise SettingsError("the server has neither command nor address", "/mcpServers", "give it command or httpUrl")
    return await stack.enter_async_context(Client(transport))


def _errors_file() -> IO[str]:
    """Where a server writes its standard error: a file of no name, or nowhere if there is no room for one."""
    try:
        return tempfile.TemporaryFile("w+", errors="replace")
    except OSError:
        return open(os.devnull, "w+", errors="replace")


async def _list(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) >= MAX_TOOLS:
            break
    return tools[:MAX_TOOLS]


def _text(result: Any) -> str:
    """The content of a result as text; what is no text is named."""
    parts: list[str] = []
    for block in result.content:
        match block.type:
            case "text":
                parts.append(block.text)
            case "resource" if getattr(block.resource, "text", None) is not None:
                parts.append(block.resource.text)
            case "resource_link":
                parts.append(f"[{block.name}: {block.uri}]")
            case kind:
                parts.append(f"[{kind} {getattr(block, 'mime_type', None) or ''} is not shown]")
    if not parts and result.structured_content is not None:
        parts.append(to_json(result.structured_content))
    return "\n".join(parts) or "(no content)"


async def _dropped(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _leaf(error: BaseException) -> str:
    """What went wrong at the bottom of the groups in which tasks report it."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _tail(errors: IO[str]) -> str:
    """The end of what a server wrote to its standard error."""
    with contextlib.suppress(OSError, ValueError):
        size = errors.seek(0, 2)
        errors.seek(max(0, size - 500))
        written = errors.read().strip()
        return f" ({written})" if written else ""
    return ""


def _require_sdk() -> None:
    try:
        import mcp  # noqa: F401 - only whether it is there
    except ImportError:
        raise SettingsError("MCP servers need the SDK", "/mcpServers", install("agent")) from None


def state_messages(states: Sequence[ServerState]) -> list[dict[str, str]]:
    """The servers as the first message of a run lists them."""
    return [{"name": state.name, "status": state.status} for state in states]
