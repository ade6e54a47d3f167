"""Which tools are offered and which calls may run: rules, approval modes, the borders of the workspace.

Rule        `Bash(git *)`, `Read(./secrets/**)`, `WebFetch(domain:example.com)`, `mcp__server__tool`, `edit`
Rules       all rules of a run with its approval mode: registers(tool), decide(call), allows_path(path)

A call is judged by deny, then ask, then allow rules, then by the mode. Rules that forbid follow symbolic links; rules
that allow take a path as it is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dovetail.agent.commands import Command, CommandError, canonical, plain_commands, simple_commands
from dovetail.agent.environment import own_folders
from dovetail.agent.forbidden import credentials, is_other_name, lies_in, real_place, resolved_places
from dovetail.agent.matching import base, hint, named_by, runs_one, same_site
from dovetail.agent.patterns import matches_text
from dovetail.agent.repository import obeyed
from dovetail.agent.settings import Settings, SettingsError, did_you_mean, dovetail_home, server_slug
from dovetail.agent.types import STRUCTURED_OUTPUT, ApprovalMode, Decision

READ_TOOLS = ("read_file", "list_directory", "glob", "grep_search")
EDIT_TOOLS = ("edit", "write_file")
SHELL = "run_shell_command"
FETCH = "web_fetch"
AGENT = "agent"

# The tools that a core list restricts; every other tool ignores it.
CORE_TOOLS = frozenset((*READ_TOOLS, *EDIT_TOOLS, SHELL, FETCH, "todo_write"))
BARE_TOOLS = frozenset(("read_file", "edit", SHELL))
# Tools that act only on the run itself and need no approval in any mode.
_HARMLESS = frozenset(
    (STRUCTURED_OUTPUT, AGENT, "task_stop", "send_message", "ask_user_question", "exit_plan_mode", "todo_write",
     "tool_search", "schedule")
)  # fmt: skip
_REMOVED: Mapping[str, tuple[str, ...]] = {
    "plan": (SHELL, *EDIT_TOOLS),
    "default": (SHELL, *EDIT_TOOLS),
    "auto": (SHELL, *EDIT_TOOLS),
    "auto-edit": (SHELL,),
    "yolo": (),
}
# The names under which rules and flags know a tool; a name can stand for several.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "bash": (SHELL,),
    "shell": (SHELL,),
    "shelltool": (SHELL,),
    "read": READ_TOOLS,
    "readfile": ("read_file",),
    "readfiletool": ("read_file",),
    "write": ("write_file",),
    "writefile": ("write_file",),
    "writefiletool": ("write_file",),
    "edit": EDIT_TOOLS,
    "edittool": ("edit",),
    "replace": ("edit",),
    "ls": ("list_directory",),
    "list": ("list_directory",),
    "listfiles": ("list_directory",),
    "globtool": ("glob",),
    "grep": ("grep_search",),
    "search_file_content": ("grep_search",),
    "webfetch": (FETCH,),
    "todo": ("todo_write",),
    "todowrite": ("todo_write",),
    "task": (AGENT,),
    "structuredoutput": (STRUCTURED_OUTPUT,),
}
# How people write the aliases, for suggestions.
_SPELLINGS = ("Bash", "Shell", "Read", "Write", "Edit", "Glob", "Grep", "LS", "WebFetch", "TodoWrite", "Task")
# Tools of other agents, whose rules may stand in settings that are shared with them; here they are about nothing.
_ELSEWHERE = frozenset(
    "WebSearch web_search NotebookEdit NotebookRead notebook_edit MultiEdit BashOutput KillShell KillBash SlashCommand "
    "Skill ExitPlanMode AskUserQuestion zoom_image read_mcp_resource save_memory lsp cron_create cron_list cron_delete "
    "loop_wakeup create_sub_session monitor skill get_goal update_goal".split()
)
# Folders below a workspace that no file tool writes: what is in them decides what later runs and commands of git do.
_KEPT = (".dovetail", ".git")
# Files that show the environment, the memory and the arguments of a process.
_OF_PROCESS = re.compile(r"/proc/(\d+|(thread-)?self)(/|$)")
_PATH_ARGUMENTS = ("file_path", "path")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as written, the tools it is about, and the calls of them that it means (None: all)."""

    text: str
    tools: tuple[str, ...]
    specifier: str | None = None

    @classmethod
    def parse(cls, text: str, path: str = "") -> Rule:
        """Read `Tool` or `Tool(specifier)`."""
        name, bracket, rest = text.strip().partition("(")
        name = name.strip()
        if not name or (bracket and not rest.endswith(")")) or ")" in name:
            raise SettingsError(f"{text!r} is no rule", path, "write Tool or Tool(pattern), such as Bash(git *)")
        # The bare tool name `edit` means that tool; the category `Edit` means every tool that edits.
        tools = (name,) if name == "edit" else _ALIASES.get(name.lower(), (name,))
        return cls(text.strip(), tools, rest[:-1].strip() or None if bracket else None)

    def names(self, tool: str) -> bool:
        """Whether the rule is about this tool at all."""
        return any(_same_tool(name, tool) for name in self.tools)


def _same_tool(name: str, tool: str) -> bool:
    if name.startswith("mcp__"):
        whole_server = name.count("__") == 1
        return matches_text(f"{name}__*" if whole_server else name, tool)
    return name in (tool, "*")


class _Listed(NamedTuple):
    verdict: Literal["allow", "ask", "deny"]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class ToolFlags:
    """What the command line says about tools."""

    core: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    approval_mode: ApprovalMode | None = None
    yolo: bool = False
    bare: bool = False
    safe_mode: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of one run; `notes` are for stderr."""

    workspace: Path
    mode: ApprovalMode = "auto"
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    core: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    bare: bool = False
    home: Path = field(default_factory=Path.home)
    outside: tuple[Path, ...] = ()
    servers: dict[str, str] = field(default_factory=dict)  # of each tool that was registered under a short name
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, flags: ToolFlags, workspace: Path, *, home: Path | None = None) -> Rules:
        """Bring settings and flags together; settings count for nothing in a bare run but for its limits."""
        listed = Settings() if flags.bare or flags.safe_mode else settings
        notes: list[str] = []
        core = (*listed.tools.core, *flags.core)
        if flags.core and (flags.bare or flags.safe_mode):
            core = ()
            notes.append(f"Warning: --core-tools is ignored with {'--bare' if flags.bare else '--safe-mode'}.")
        rules = listed.permissions
        # A bare run has no servers but those of the command line, and those are meant.
        trusted = [f"mcp__{server_slug(name)}" for name, server in settings.mcp_servers.items() if server.trust]
        trusted += [FETCH] if listed.tools.web_fetch else []
        exclude = (*listed.tools.exclude, *flags.exclude)
        return cls(
            workspace=workspace.resolve(),
            mode=_mode(settings, flags, notes),
            allow=_parsed((*rules.allow, *listed.tools.allowed, *flags.allowed, *trusted), "permissions.allow"),
            ask=_parsed(rules.ask, "permissions.ask"),
            deny=_parsed((*rules.deny, *exclude), "permissions.deny"),
            core=frozenset(tool for name in core for tool in Rule.parse(name, "tools.core").tools),
            disabled=frozenset(listed.tools.disabled),
            bare=flags.bare,
            home=home or Path.home(),
            outside=tuple(Path(os.path.expanduser(path)).resolve() for path in listed.context.include_directories),
            notes=tuple(notes),
        )

    def registers(self, name: str, mcp_server: str = "") -> Decision:
        """Whether the tool may be offered to the model at all: "deny" names the rule that removes it."""
        if mcp_server:
            self.servers[name] = mcp_server
        if name in self.disabled:
            return Decision("deny", name, f"tools.disabled lists {name!r}")
        for rule in self.deny:
            if rule.specifier is None and self._names(rule, name):
                return Decision("deny", rule.text, f"the deny rule {rule.text!r} removes the tool")
        if mcp_server or name == STRUCTURED_OUTPUT:
            return Decision("allow")
        explicit = name in self.core or any(rule.names(name) for rule in self.allow)
        if self.bare:
            return Decision("allow") if name in BARE_TOOLS else Decision("deny", "--bare", "a bare run has few tools")
        if self.core and name in CORE_TOOLS and name not in self.core:
            return Decision("deny", "tools.core", "the list of core tools leaves it out")
        if name in _REMOVED[self.mode] and not explicit:
            return Decision("deny", self.mode, f"approval mode {self.mode!r} needs a person to approve its calls")
        if name == FETCH and not explicit:
            return Decision("deny", FETCH, "fetching from the web is off unless it is allowed")
        return Decision("allow")

    def decide(self, name: str, args: Mapping[str, Any], read_only: bool) -> Decision:
        """Whether this call may run; "ask" means that a person would have to say so.

        A reason is given only where the rule and the verdict do not say it all.
        """
        if name == SHELL and isinstance(command := args.get("command"), str):
            decision = self._shell(command, args.get("directory"))
        else:
            decision = self._by_rules(name, args)
        if decision is not None and decision.verdict != "allow":
            return decision
        if name in (*READ_TOOLS, *EDIT_TOOLS):
            place = self.allows_path(self.workspace / _path_argument(args), name in EDIT_TOOLS)
            if place.verdict != "allow":
                return place
        if name in _HARMLESS or (read_only and name != FETCH):
            return decision or Decision("allow")
        if self.mode == "plan":
            return Decision(
                "deny", "plan", f'Plan mode is active: "{name}" may not be used, because it changes things.'
            )
        return decision or self._by_mode(name)

    def allows_path(self, path: Path, write: bool) -> Decision:
        """Whether a file tool may touch the path, symbolic links resolved."""
        tools = EDIT_TOOLS if write else READ_TOOLS[:1]
        for verdict, rules in self._forbids():
            if rule := self._path_rule(rules, tools, path, follow=True):
                return Decision(verdict, rule.text, f"the {verdict} rule {rule.text!r} covers {path}")
        target = _resolved(path)
        if target is None:
            return Decision("deny", "", f"{path} leads nowhere")
        if write and any(self._is_kept(each) for each in (_normal(path), target)):
            return Decision(
                "deny", "", f"{path} belongs to {' or '.join(_KEPT)}, or git obeys it: no tool may write it"
            )
        if not write and is_other_name(target, self.path_patterns(tools), (self.workspace, *self.outside)):
            return Decision("deny", "", f"{path} is another name of a file that a rule forbids to read")
        if _OF_PROCESS.match(str(target)):
            return Decision("deny", "", f"{path} shows a process, and may tell its keys")
        if self._holds_keys(target) and not self.opens(path) and not self.opens(target):
            return Decision("deny", "", f"{path} is a place of keys, which only an allow rule that names it opens")
        if any(target.is_relative_to(root) for root in (self.workspace, *self.outside)):
            return Decision("allow")
        if rule := self._path_rule(self.allow, tools, target, follow=False):
            return Decision("allow", rule.text)
        return Decision("deny", "", f"{path} is outside the workspace {self.workspace}")

    def check_names(self, tools: Iterable[str], *, certain: bool = True) -> None:
        """Raise SettingsError for a rule about a tool that there is not.

        Where it is not `certain` that all tools are known, only for a name that is nearly another one.
        """
        known = {*tools, *CORE_TOOLS, *_HARMLESS}
        rules = [(rule.text, rule.tools) for rule in (*self.allow, *self.ask, *self.deny)]
        for text, names in (*rules, *((name, (name,)) for name in sorted(self.core | self.disabled))):
            for name in names:
                if name in known or name in _ELSEWHERE or name == "*" or name.startswith("mcp__"):
                    continue
                hint = did_you_mean(name, (*known, *_SPELLINGS))
                if hint or certain:
                    raise SettingsError(
                        f"there is no tool {name!r}{hint}", f"the rule {text!r}", "name a tool of this run"
                    )

    def _is_kept(self, path: Path) -> bool:
        """Whether no tool may write the path: settings of runs, and what git obeys."""
        if path.is_relative_to(dovetail_home().resolve()):
            return True
        root = next((root for root in (self.workspace, *self.outside) if path.is_relative_to(root)), Path("/"))
        if any(part.lower() in _KEPT for part in path.relative_to(root).parts):
            return True
        if any(path.is_relative_to(folder) for folder in own_folders()):
            return True
        return any(path.is_relative_to(_resolved(each.path) or each.path) for each in obeyed(root, self.home))

    def _holds_keys(self, path: Path) -> bool:
        """Whether a path lies in a place of keys in which nothing lies that this run works in."""
        places = resolved_places((*credentials(self.home), dovetail_home()))
        holding = (place for place in places if path.is_relative_to(place))
        return any(not any(root.is_relative_to(place) for root in (self.workspace, *self.outside)) for place in holding)

    def path_patterns(self, tools: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
        """What deny and ask rules about these tools cover: folders, and globs that count from there."""
        for rule in (*self.deny, *self.ask):
            if rule.specifier is not None and any(rule.names(tool) for tool in tools):
                yield self._anchored(rule.specifier)

    def opens(self, path: Path) -> bool:
        """Whether an allow rule names a path outside the workspace to be read."""
        return self._path_rule(self.allow, READ_TOOLS[:1], path, follow=False) is not None

    def denied_programs(self) -> list[str]:
        """The names of programs, with `*`, that deny and ask rules forbid whatever their arguments are."""
        rules = (rule for rule in (*self.deny, *self.ask) if rule.specifier is not None and rule.names(SHELL))
        names = (re.fullmatch(r"([^\s/:]+)(?: \*|:\*)?", rule.specifier or "") for rule in rules)
        return [match[1] for match in names if match is not None and match[1].strip("*")]

    def _names(self, rule: Rule, tool: str) -> bool:
        """Whether a rule is about the tool, which rules may name with its server in front."""
        server = self.servers.get(tool)
        return rule.names(tool) or (server is not None and rule.names(f"mcp__{server}__{tool}"))

    def _forbids(self) -> tuple[_Listed, _Listed]:
        return _Listed("deny", self.deny), _Listed("ask", self.ask)

    def _by_mode(self, name: str) -> Decision:
        if self.mode == "yolo" or (self.mode == "auto-edit" and name in EDIT_TOOLS):
            return Decision("allow", self.mode)
        return Decision("ask")

    def _by_rules(self, name: str, args: Mapping[str, Any]) -> Decision | None:
        for verdict, rules in (*self._forbids(), _Listed("allow", self.allow)):
            for rule in rules:
                if self._names(rule, name) and self._means(rule, name, args, follow=verdict != "allow"):
                    return Decision(verdict, rule.text)
        return None

    def _means(self, rule: Rule, name: str, args: Mapping[str, Any], *, follow: bool) -> bool:
        if rule.specifier is None:
            return True
        if name in READ_TOOLS or name in EDIT_TOOLS:
            return self._path_matches(rule.specifier, self.workspace / _path_argument(args), follow=follow)
        if name == FETCH:
            return same_site(rule.specifier, str(args.get("url", "")), loosely=follow)
        if name == AGENT:
            return matches_text(rule.specifier, str(args.get("subagent_type", "")))
        # What a pattern means for any other tool is not known: it forbids all of its calls and allows none.
        return follow

    def _path_rule(self, rules: Iterable[Rule], tools: tuple[str, ...], path: Path, *, follow: bool) -> Rule | None:
        for rule in rules:
            about = rule.specifier is not None and any(rule.names(tool) for tool in tools)
            if about and self._path_matches(rule.specifier or "", path, follow=follow):
                return rule
        return None

    def _path_matches(self, pattern: str, path: Path, *, follow: bool) -> bool:
        named, written = self._anchored(pattern), _normal(path)
        places = {named, real_place(*named)} if follow else {named}
        paths = {written, _resolved(path) or written} if follow else {written}
        return any(lies_in(place, each, ignore_case=follow) for place in places for each in paths)

    def _anchored(self, pattern: str) -> tuple[Path, str]:
        """The folder from which a pattern counts, and what it says from there on."""
        if pattern.startswith("//"):
            anchor, pattern = Path("/"), pattern[2:]
        elif pattern == "~" or pattern.startswith("~/"):
            anchor, pattern = self.home, pattern[2:]
        else:
            anchor, pattern = self.workspace, pattern.removeprefix("./").removeprefix("/")
            while pattern == ".." or pattern.startswith("../"):
                anchor, pattern = anchor.parent, pattern[3:]
        pattern = pattern.rstrip("/").removesuffix("/**")
        return anchor, pattern if pattern not in ("", ".") else "**"

    def _shell(self, text: str, folder: object) -> Decision | None:
        return self._forbids_command(text) or self._allows_command(text, folder)

    def _forbids_command(self, text: str) -> Decision | None:
        """What deny and ask rules say to a command, as far as its text tells what it does."""
        restricting = [rule for rule in (*self.deny, *self.ask) if rule.specifier is not None]
        if not restricting and not any(rule.names(SHELL) for rule in (*self.deny, *self.ask)):
            return None
        try:
            commands = simple_commands(text)
        except CommandError as error:
            commands, problem = [Command(text, (text,))], str(error)
        else:
            problem = ""
        for verdict, rules in self._forbids():
            if rule := self._forbidding(rules, text, commands):
                return Decision(verdict, rule.text)
        if not problem and any(rule.names(SHELL) for rule in restricting):
            made_up = any(command.dynamic for command in commands)
            problem = "the name of a command in it is only known when it runs" if made_up else ""
        if restricting and problem:
            return Decision("deny", "", f"This command cannot be checked against the rules for commands: {problem}")
        return None

    def _allows_command(self, text: str, folder: object) -> Decision | None:
        """What allow rules say to a command: all of its simple commands have to be named, and nothing else be in it."""
        allowing = [rule for rule in self.allow if rule.names(SHELL)]
        whole = next((rule for rule in allowing if rule.specifier in (None, "*")), None)
        if whole is not None:
            return Decision("allow", whole.text)
        if not allowing or self.mode in ("yolo", "plan"):
            return None
        try:
            commands = plain_commands(text)
        except CommandError as error:
            return Decision("ask", "", f"No allow rule covers this command: {error}")
        moved = self._moves(commands, folder)
        if any("git" in map(base, words) for words in commands) and self._is_elsewhere(commands, folder):
            return Decision(
                "ask", "", "No allow rule covers git where another repository may be: its settings name programs."
            )
        for words in commands:
            if not any(named_by(rule.specifier or "*", words, moved) for rule in allowing):
                return Decision("ask", "", f"No allow rule covers {canonical(words)!r}.{hint(words)}")
        return Decision("allow", ", ".join(rule.text for rule in allowing))

    def _moves(self, commands: Iterable[tuple[str, ...]], folder: object) -> bool:
        """Whether a command runs in another folder than the one that rules are written for."""
        elsewhere = isinstance(folder, str) and _resolved(self.workspace / folder) != self.workspace
        return elsewhere or any(words[0] in ("cd", "pushd", "popd") for words in commands)

    def _is_elsewhere(self, commands: Iterable[tuple[str, ...]], folder: object) -> bool:
        """Whether a command may run in a repository that lies in the workspace, or outside of it."""
        place = self.workspace / folder if isinstance(folder, str) else self.workspace
        for words in commands:
            if words[0] in ("pushd", "popd"):
                return True
            if words[0] == "cd":
                names = [word for word in words[1:] if word not in ("-P", "-L", "--")]
                if len(names) != 1 or names[0].startswith("-"):
                    return True
                place = place / names[0]
            if self._in_other_repository(place):
                return True
        return False

    def _in_other_repository(self, place: Path) -> bool:
        real = _resolved(place)
        for folder in (real, *real.parents) if real else ():
            if folder in (self.workspace, *self.outside):
                return False
            if os.path.lexists(folder / ".git"):
                return True
        return True

    def _forbidding(self, rules: Iterable[Rule], text: str, commands: list[Command]) -> Rule | None:
        touched = {pair for command in commands for pair in command.touched()}
        for rule in rules:
            if rule.names(SHELL) and (rule.specifier is None or runs_one(rule.specifier, text, commands)):
                return rule
            if rule.specifier is not None and any(self._covers(rule, kind, what) for kind, what in touched):
                return rule
        return None

    def _covers(self, rule: Rule, kind: str, what: str) -> bool:
        """Whether a rule about files or sites forbids what a command implies."""
        if kind == "fetch":
            return rule.names(FETCH) and same_site(rule.specifier or "", what, loosely=True)
        tools = EDIT_TOOLS if kind == "write" else READ_TOOLS
        path = self.workspace / Path(what.replace("~", str(self.home), 1) if what.startswith("~/") else what)
        return any(rule.names(tool) for tool in tools) and self._path_matches(rule.specifier or "", path, follow=True)


def _path_argument(args: Mapping[str, Any]) -> str:
    return next((args[key] for key in _PATH_ARGUMENTS if isinstance(args.get(key), str)), ".")


def _mode(settings: Settings, flags: ToolFlags, notes: list[str]) -> ApprovalMode:
    plain = flags.bare or flags.safe_mode
    configured: ApprovalMode = "default" if plain else settings.tools.approval_mode or "auto"
    mode: ApprovalMode = flags.approval_mode or ("yolo" if flags.yolo else configured)
    if not settings.trusted and mode not in ("default", "plan"):
        if flags.approval_mode or flags.yolo or settings.tools.approval_mode:
            notes.append(f'Approval mode "{mode}" is not used in an untrusted folder: it is "default" here.')
        return "default"
    return mode


def _parsed(texts: Iterable[str], path: str) -> tuple[Rule, ...]:
    return tuple(Rule.parse(text, path) for text in texts)


def _normal(path: Path) -> Path:
    """The path without `.` and `..`, symbolic links left as they are."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if len(parts) > 1:
                parts.pop()
        else:
            parts.append(part)
    return Path(*parts)


def _resolved(path: Path) -> Path | None:
    try:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.stat()  # since Python 3.13 resolve() passes over links in a circle
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a zero byte in a name
        return None
