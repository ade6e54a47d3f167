"""The tools of a conversation by name, the guard of the terminal tool's name, and the search for tools put aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from dovetail.agent.protocols import Permissions, Tool, ToolContext
from dovetail.agent.types import STRUCTURED_OUTPUT, Schema, ToolError, ToolOutput, ToolSpec

# Beyond this many tools, those of MCP servers are put aside until the model asks for them.
MAX_LOADED = 60
MAX_FOUND = 10


class Renamed:
    """A tool under another name."""

    def __init__(self, tool: Tool, name: str) -> None:
        self._tool = tool
        self.name = name
        self.description = tool.description
        self.parameters = tool.parameters
        self.read_only = tool.read_only
        self.mcp_server = tool.mcp_server

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """What the tool does."""
        return await self._tool.run(args, context)


class Registry:
    """Tools by name; the first tool of a name keeps it, and one of an MCP server that comes later is renamed."""

    def __init__(self, tools: Iterable[Tool], permissions: Permissions, terminal: Tool | None = None) -> None:
        self._permissions = permissions
        self._tools: dict[str, Tool] = {}
        if terminal is not None:
            self._tools[terminal.name] = terminal
        ordered = sorted(tools, key=lambda tool: bool(tool.mcp_server))
        for tool in ordered:
            self.add(tool)
        self._aside = {name for name, tool in self._tools.items() if tool.mcp_server}
        if len(self._tools) <= MAX_LOADED:
            self._aside = set()
        elif self._aside:
            search = ToolSearch(self)
            self._tools[search.name] = search

    def add(self, tool: Tool) -> None:
        """Offer a tool, unless the rules remove it under the name that it gets."""
        name = tool.name
        if name in self._tools and tool.mcp_server:
            name = f"mcp__{tool.mcp_server}__{tool.name}"
            tool = Renamed(tool, name)
        if self._permissions.registers(name, tool.mcp_server).verdict != "deny":
            self._tools[name] = tool

    def get(self, name: str) -> Tool | None:
        """The tool of this name; asking for one put aside by its full name loads it."""
        self._aside.discard(name)
        return self._tools.get(name)

    @property
    def names(self) -> list[str]:
        """The names of all tools, sorted."""
        return sorted(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them now."""
        return tuple(
            tool.spec if isinstance(tool, Terminal) else _spec(tool)
            for name, tool in self._tools.items()
            if name not in self._aside
        )

    def load(self, query: str) -> Sequence[Tool]:
        """Bring the tools that were put aside and fit the words of `query`, the best first."""
        words = query.lower().split()

        def hits(name: str) -> int:
            tool = self._tools[name]
            text = f"{name} {tool.description}".lower()
            return sum(word in text for word in words) + 2 * sum(word in name.lower() for word in words)

        names = sorted((name for name in self._aside if hits(name)), key=lambda name: (-hits(name), name))[:MAX_FOUND]
        self._aside -= set(names)
        return [self._tools[name] for name in names]

    def without_terminal(self, permissions: Permissions, without: frozenset[str] = frozenset()) -> Registry:
        """A registry for a subagent: the same tools, but never the one that ends the run."""
        hidden = without | {ToolSearch.name}
        tools = [
            tool
            for name, tool in self._tools.items()
            if name not in hidden and not (name == STRUCTURED_OUTPUT and isinstance(tool, Terminal))
        ]
        return Registry(tools, permissions)


def _spec(tool: Tool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, _of_objects(tool.parameters))


def _of_objects(parameters: Schema) -> Schema:
    """The schema with what holds for all arguments said in it: services want it, and a grammar needs it."""
    return parameters if parameters.get("type") == "object" else {**parameters, "type": "object"}


class Terminal:
    """The terminal tool: to call it with arguments that fit is to end the run."""

    name = STRUCTURED_OUTPUT
    description = (
        "Delivers the final result of this run; it is the only way to do so. The first call whose arguments fit the "
        "schema ends the session. Answers in plain text are thrown away. A call that does not fit is answered with "
        "everything that is wrong with it and can be made again."
    )
    read_only = False
    mcp_server = ""

    def __init__(self, parameters: Schema, example: Mapping[str, Any] | None = None) -> None:
        self.parameters = parameters
        self.spec = ToolSpec(self.name, self.description, _of_objects(parameters), strict=True, example=example)

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Accept; a subagent that got hold of the tool is refused, since only the run itself can end."""
        if context.depth:
            raise ToolError("structured_output belongs to the main run; answer in plain text instead")
        return ToolOutput(
            "Structured output accepted. The session will end now — do not send further content.",
            "Structured output accepted.",
        )


class ToolSearch:
    """Finds tools that are not offered from the start."""

    name = "tool_search"
    description = "Finds further tools by words that describe them and makes them callable from the next turn on."
    parameters: ClassVar[Schema] = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "words that describe what the tool should do"}},
        "required": ["query"],
    }
    read_only = True
    mcp_server = ""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Load what fits."""
        loaded = self._registry.load(str(args["query"]))
        if not loaded:
            return ToolOutput("No further tool fits these words.")
        lines = "\n".join(
            f"{tool.name}: {tool.description.splitlines()[0] if tool.description else ''}" for tool in loaded
        )
        return ToolOutput(f"You can call these tools now:\n{lines}")
