"""Settings files: the user's, and the project's on top of it.

~/.dovetail/settings.json, then <workspace>/.dovetail/settings.json. In a folder that the user trusts, lists of rules,
hooks and servers add up, and anything else that the project says replaces what the user says; in any other folder the
project can only restrict. A setting that does not exist is an error. `$NAME` and `${NAME}` in servers, model and
context are environment variables.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from dovetail.agent.trust import restricted
from dovetail.agent.types import ApprovalMode, Effort, LoopLimits
from dovetail.errors import InputError

_MAX_BYTES = 4 << 20
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# Settings that add up over files; they are lists, or tables whose entries are.
_ADDED = ("permissions", "hooks")
TRUSTED_FOLDERS = "trustedFolders.json"
HookEvent = Literal["PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"]
_FOUND_OUT = frozenset(("trusted", "unused"))
# Settings in which environment variables are put in; commands and rules have uses of their own for the dollar.
_EXPANDED = ("mcpServers", "model", "context")


class SettingsError(InputError):
    """A settings file, a rule, a hook or the configuration of a server is malformed."""


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")


class PermissionSettings(_Model):
    """Rules, each `Tool` or `Tool(pattern)`."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class ToolSettings(_Model):
    """Which tools there are, and how their calls are approved."""

    core: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    approval_mode: ApprovalMode | None = None
    web_fetch: bool = False
    shell_timeout_seconds: float | None = Field(default=None, gt=0)
    max_output_chars: int = Field(default=25_000, ge=-1)
    sandbox: Literal["auto", "required", "bubblewrap", "landlock", "off"] = "auto"
    sandbox_network: bool = False
    keep_environment: tuple[str, ...] = ()  # variables that programs get although they look like keys

    @field_validator("approval_mode", mode="before")
    @classmethod
    def _spelling(cls, value: object) -> object:
        """`auto_edit`, `autoEdit` and `AUTO-EDIT` are all auto-edit."""
        if not isinstance(value, str):
            return value
        word = value.lower().replace("_", "-")
        return "auto-edit" if word == "autoedit" else word


class ModelSettings(_Model):
    """The model and the limits of a run."""

    name: str = ""
    provider: str = ""
    base_url: str = ""
    max_session_turns: int = Field(default=-1, ge=-1)
    max_wall_time_seconds: float = -1
    max_tool_calls: int = Field(default=-1, ge=-1)
    max_tool_calls_per_turn: int | None = Field(default=None, ge=-1)
    max_tokens_total: int = Field(default=-1, ge=-1)
    max_cost_usd: float = Field(default=-1, ge=-1, allow_inf_nan=False)
    max_output_tokens: int | None = Field(default=None, gt=0)
    context_window: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    effort: Effort | None = None
    timeout_seconds: float = Field(default=600, gt=0, allow_inf_nan=False)
    max_retries: int = Field(default=5, ge=0, le=100)
    fallback: str = ""
    prices: dict[str, dict[str, float | dict[str, float]]] = Field(default_factory=dict)


class LoopSettings(_Model):
    """When a model that makes no progress is stopped, in calls; -1 is never."""

    in_a_row: int = Field(default=LoopLimits().in_a_row, ge=-1)
    in_all: int = Field(default=LoopLimits().in_all, ge=-1)
    calls_per_prompt: int = Field(default=LoopLimits().calls, ge=-1)

    @property
    def limits(self) -> LoopLimits:
        """These settings as the limits of the guard against loops."""
        return LoopLimits(self.in_a_row, self.in_all, self.calls_per_prompt)


class OutputSettings(_Model):
    """How results are written."""

    format: Literal["text", "json", "stream-json"] = "text"


class ContextSettings(_Model):
    """Folders beside the workspace that file tools may use, and whether AGENTS.md and CLAUDE.md are read."""

    include_directories: tuple[str, ...] = ()
    files: bool = True


class HookCommand(_Model):
    """One hook: a command of the shell, or an address that is sent the same JSON."""

    type: Literal["command", "http"] = "command"
    command: str = ""
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: float | None = Field(default=None, gt=0)  # milliseconds, as in the reference
    name: str = ""  # for people, as is the description
    description: str = ""


class HookGroup(_Model):
    """Hooks for the tools whose name the matcher takes."""

    matcher: str = ""
    hooks: tuple[HookCommand, ...] = ()


class ServerSettings(_Model):
    """One MCP server: a command with pipes, or an address that speaks streamable HTTP."""

    type: Literal["", "stdio", "http", "sse", "streamable-http"] = ""  # command and address tell it already
    description: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    http_url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: float = Field(default=600_000, gt=0)  # milliseconds, as in the reference
    connect_timeout: float | None = Field(default=None, gt=0)  # milliseconds, too
    trust: bool = False
    include_tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The HTTP address, "" for a command."""
        return self.http_url or self.url


class McpSettings(_Model):
    """Which of the configured servers are used."""

    allowed: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()


class TelemetrySettings(_Model):
    """What OpenTelemetry is told."""

    enabled: bool = True


class GeneralSettings(_Model):
    """What fits nowhere else."""

    chat_recording: bool = True
    keep_answers: bool = False


class FolderTrust(_Model):
    """Whether folders that are not trusted get the approval mode `default` at most."""

    enabled: bool = False


class SecuritySettings(_Model):
    """How careful to be; only the user's file counts."""

    folder_trust: FolderTrust = FolderTrust()


class Settings(_Model):
    """Everything that settings files can say.

    `trusted` and `unused` are found out, never read: whether the approval mode may be more than `default` in this
    folder, and what the project says that counts only where it is trusted.
    """

    permissions: PermissionSettings = PermissionSettings()
    tools: ToolSettings = ToolSettings()
    model: ModelSettings = ModelSettings()
    loop: LoopSettings = LoopSettings()
    output: OutputSettings = OutputSettings()
    context: ContextSettings = ContextSettings()
    hooks: dict[HookEvent, tuple[HookGroup, ...]] = Field(default_factory=dict)
    disable_all_hooks: bool = False
    mcp_servers: dict[str, ServerSettings] = Field(default_factory=dict)
    mcp: McpSettings = McpSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    general: GeneralSettings = GeneralSettings()
    security: SecuritySettings = SecuritySettings()
    trusted: bool = True
    unused: tuple[str, ...] = ()


def dovetail_home() -> Path:
    """The folder of the user's settings and transcripts: $DOVETAIL_HOME, else ~/.dovetail."""
    return Path(os.environ.get("DOVETAIL_HOME") or Path.home() / ".dovetail")


def load_settings(
    workspace: Path, home: Path | None = None, *, bare: bool = False, trust_project: bool = False
) -> Settings:
    """The settings of a run in `workspace`; a bare run reads none but still minds trust."""
    home = home or dovetail_home()
    user = _settings_file(home / "settings.json")
    project_file = workspace / ".dovetail" / "settings.json"
    same = os.path.realpath(project_file) == os.path.realpath(home / "settings.json")
    trusted = trust_project or is_trusted(workspace, home)
    merged: dict[str, Any] = {} if bare else user
    unused: tuple[str, ...] = ()
    if not bare and not same:
        project = _settings_file(project_file)
        merged, unused = (_merged(user, project), ()) if trusted else restricted(user, project)
    merged |= {key: _expanded(merged[key]) for key in _EXPANDED if key in merged}
    asks = user.get("security", {}).get("folderTrust", {}).get("enabled", False)
    settings = cast(Settings, _validated(Settings, merged, "settings.json"))
    return settings.model_copy(update={"trusted": trusted or not asks, "unused": unused})


def settings_of(value: Mapping[str, Any]) -> Settings:
    """The settings that an object says, as a file of settings would."""
    return cast(Settings, _validated(Settings, known_settings(Settings, dict(value), "settings"), "settings"))


def _settings_file(path: Path) -> dict[str, Any]:
    """What a file says, with every setting known and of its type, under its usual spelling."""
    settings = cast(dict[str, Any], known_settings(Settings, _read(path), str(path)))
    _validated(Settings, settings, str(path), strictly=True)
    return settings


def is_trusted(workspace: Path, home: Path) -> bool:
    """Whether the user trusts the folder.

    trustedFolders.json names folders with TRUST_FOLDER, TRUST_PARENT or DO_NOT_TRUST; the nearest one counts.
    """
    place = workspace.resolve()
    best: tuple[int, bool] = (-1, False)
    for text, level in _read(home / TRUSTED_FOLDERS).items():
        folder = Path(os.path.expanduser(text)).resolve()
        folder = folder.parent if level == "TRUST_PARENT" else folder
        if place.is_relative_to(folder):
            # Of two words on the same folder, the one against trust counts.
            best = max(
                best, (len(folder.parts), level in ("TRUST_FOLDER", "TRUST_PARENT")), key=lambda b: (b[0], not b[1])
            )
    return best[1]


def set_trust(workspace: Path, trusted: bool, home: Path | None = None) -> None:
    """Write down whether the user trusts the folder."""
    home = home or dovetail_home()
    file = home / TRUSTED_FOLDERS
    folder = str(workspace.resolve())
    folders = {path: level for path, level in _read(file).items() if path != folder}
    folders |= {folder: "TRUST_FOLDER"} if trusted else {}
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = file.with_name(f".{TRUSTED_FOLDERS}.{os.getpid()}")
    beside.write_text(json.dumps(folders, indent=2) + "\n", encoding="utf-8")
    beside.replace(file)


def read_mcp_config(text: str) -> dict[str, ServerSettings]:
    """The servers of `--mcp-config`: JSON text, or the path of a file with it; with or without "mcpServers" around."""
    if text.lstrip().startswith("{"):
        value = _parsed(text, "--mcp-config")
    else:
        path = Path(os.path.expanduser(text))
        if not path.is_file():
            raise SettingsError(f"there is no file {text!r}", "--mcp-config", "give JSON text or the path of a file")
        value = _read(path)
    servers = value.get("mcpServers", value)
    if not isinstance(servers, dict):
        raise SettingsError("an object of servers is expected", "/mcpServers", 'write {"name": {"command": "..."}}')
    settings = known_settings(Settings, {"mcpServers": _expanded(servers)}, "--mcp-config")
    wrapped = _validated(Settings, settings, "--mcp-config", strictly=True)
    return cast(Settings, wrapped).mcp_servers


def server_slug(name: str) -> str:
    """The name of a server inside the names of its tools, where two underscores separate."""
    return re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9-]", "_", name)).strip("_") or "server"


def known_settings(kind: Any, value: Any, place: str, pointer: str = "") -> Any:
    """The value with the usual spelling of all keys; SettingsError for the first one that does not exist."""
    if isinstance(value, list):
        inner = get_args(kind)[:1] or (None,)
        return [known_settings(inner[0], item, place, f"{pointer}/{index}") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    names, kinds = _keys(kind, value)
    known = {}
    for key, item in value.items():
        if key not in names:
            what = "hook event" if pointer == "/hooks" else "setting"
            raise SettingsError(
                f"there is no {what} {key[:100]!r}{did_you_mean(key, names)}",
                f"{place} {pointer}/{key}",
                "correct or remove it",
            )
        if names[key] in known:
            raise SettingsError(f"{names[key]!r} stands twice", f"{place} {pointer}", "put them together")
        known[names[key]] = known_settings(kinds[key], item, place, f"{pointer}/{names[key]}")
    return known


def _keys(kind: Any, value: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """The keys that an object of this kind may have, with their usual spelling, and the kinds of their values."""
    models = [one for one in (kind, *get_args(kind)) if isinstance(one, type) and issubclass(one, BaseModel)]
    if get_origin(kind) is dict:
        keys, inner = get_args(kind)
        names = get_args(keys) or tuple(value)
        return {name: name for name in names}, dict.fromkeys(names, inner)
    if not models:
        return {name: name for name in value}, dict.fromkeys(value, None)
    fields = {name: field for name, field in models[0].model_fields.items() if name not in _FOUND_OUT}
    pairs = [(name, field.alias or name, field.annotation) for name, field in fields.items()]
    names_of = {each: alias for name, alias, _ in pairs for each in (name, alias)}
    kinds = {each: annotation for name, alias, annotation in pairs for each in (name, alias)}
    return names_of | {"$schema": "$schema"}, kinds | {"$schema": None}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that is meant, as the end of a message; "" where none is near."""
    by_lower = {name.lower(): name for name in reversed(tuple(known))}
    near = get_close_matches(word[:100].lower(), by_lower, 1, 0.7)
    return f" (did you mean {by_lower[near[0]]!r}?)" if near else ""


def _read(path: Path) -> dict[str, Any]:
    try:
        if not os.path.lexists(path):
            return {}
        if not path.is_file():  # what it should forbid must not go by in silence
            raise SettingsError("this is no regular file", str(path), "make it one, or remove it")
        if path.stat().st_size > _MAX_BYTES:
            raise SettingsError(f"the file is larger than {_MAX_BYTES} bytes", str(path), "make it smaller")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the file cannot be read: {error}", str(path), "make it readable, or remove it") from error
    return _parsed(text, str(path))


def _parsed(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, place))
    except SettingsError:
        raise
    except (ValueError, RecursionError) as error:
        # The text may hold keys of servers, so only the place of the slip is told.
        line = getattr(error, "lineno", 1)
        column = getattr(error, "colno", 1)
        where = f"{place}, line {line}, column {column}"
        raise SettingsError("this is not valid JSON", where, "correct the JSON") from None
    if not isinstance(value, dict):
        raise SettingsError("an object is expected", place, "write {...}")
    return value


def _once(pairs: list[tuple[str, Any]], place: str) -> dict[str, Any]:
    """The object, whose keys may stand only once: the last one would win over what another one forbids."""
    members = dict(pairs)
    if len(members) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise SettingsError(f"{twice[:100]!r} stands twice in one object", place, "put them together")
    return members


def _merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(low)
    for key, value in high.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = {**before, **value}
            if key in _ADDED:
                merged[key] |= {
                    name: [*before[name], *entries]
                    for name, entries in value.items()
                    if isinstance(before.get(name), list) and isinstance(entries, list)
                }
        else:
            merged[key] = value
    return merged


def _expanded(value: Any) -> Any:
    """Environment variables put in; a name that is not set stays as it is written."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: os.environ.get(match[1] or match[2], match[0]), value)
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if isinstance(value, dict):
        return {key: _expanded(item) for key, item in value.items()}
    return value


def _validated(model: type[_Model], value: Mapping[str, Any], place: str, *, strictly: bool = False) -> _Model:
    """The settings that are said, `strictly` without "5" for 5 or "yes" for true."""
    try:
        if strictly:
            return model.model_validate_json(json.dumps(value), strict=True)
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        pointer = "".join(f"/{part}" for part in first["loc"])
        raise SettingsError(f"{first['msg']}", f"{place} {pointer}", "correct or remove this setting") from None
