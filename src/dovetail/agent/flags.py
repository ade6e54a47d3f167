"""What the command line of a run says, and which flags cannot stand together."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dovetail.agent.types import ApprovalMode, Effort
from dovetail.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The command line of a run; what was not said is None, empty or False."""

    query: tuple[str, ...] = ()
    prompt: str | None = None
    prompt_interactive: str | None = None
    json_schema: str | None = None
    wrap_root: bool = False
    allow_unknown_keywords: bool = False
    output_format: Literal["text", "json", "stream-json"] | None = None
    input_format: Literal["text", "stream-json"] = "text"
    include_partial_messages: bool = False
    workspace: str = "."
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    seed: int | None = None
    max_session_turns: str | None = None
    max_wall_time: str | None = None
    max_tool_calls: str | None = None
    max_structured_retries: str | None = None
    max_subagent_depth: int = 5
    max_tokens_total: str | None = None
    max_cost: str | None = None
    prices: str | None = None
    max_tokens: str | None = None
    temperature: str | None = None
    effort: Effort | None = None
    timeout: str | None = None
    max_retries: str | None = None
    fallback_model: str | None = None
    quiet: bool = False
    verbose: bool = False
    output_file: str | None = None
    add_dir: tuple[str, ...] = ()
    context_files: bool | None = None
    keep_answer: bool = False
    yolo: bool = False
    approval_mode: ApprovalMode | None = None
    core_tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    sandbox: Literal["auto", "required", "bubblewrap", "landlock", "off"] | None = None
    sandbox_network: bool = False
    trust_project: bool = False
    bare: bool = False
    safe_mode: bool = False
    mcp_config: str | None = None
    allowed_mcp_server_names: tuple[str, ...] = ()
    continue_: bool = False
    resume: str | None = None
    session_id: str | None = None
    fork_session: bool = False
    chat_recording: bool | None = None
    system_prompt: str | None = None
    append_system_prompt: str = ""
    acp: bool = False


class ConflictError(Exception):
    """Flags that cannot stand together, or nothing to do."""


def check_conflicts(flags: Flags, stdin_is_terminal: bool) -> None:
    """Raise ConflictError for the first rule that the flags break; the order of the rules is part of the contract."""
    for broken, message in _rules(flags, stdin_is_terminal):
        if broken:
            raise ConflictError(message)


def _rules(flags: Flags, stdin_is_terminal: bool) -> Iterable[tuple[bool, str]]:
    has_prompt = flags.prompt is not None
    streamed = flags.output_format == "stream-json"
    resumes = flags.continue_ or flags.resume is not None
    yield (
        has_prompt and bool(flags.query),
        "Cannot use both a positional prompt and the --prompt (-p) flag together",
    )
    yield (
        has_prompt and flags.prompt_interactive is not None,
        "Cannot use both --prompt (-p) and --prompt-interactive (-i) together",
    )
    yield (
        flags.yolo and flags.approval_mode is not None,
        "Cannot use both --yolo (-y) and --approval-mode together. Use --approval-mode=yolo instead.",
    )
    yield (
        flags.include_partial_messages and not streamed,
        "--include-partial-messages requires --output-format stream-json",
    )
    yield (
        flags.input_format == "stream-json" and not streamed,
        "--input-format stream-json requires --output-format stream-json",
    )
    yield (
        flags.continue_ and flags.resume is not None,
        "Cannot use both --continue and --resume together. --continue is the latest session, --resume any other.",
    )
    yield (
        flags.session_id is not None and resumes and not flags.fork_session,
        "Cannot use --session-id with --continue or --resume. It names a new session.",
    )
    yield flags.quiet and flags.verbose, "Cannot use both --quiet and --verbose together."
    yield flags.fork_session and not resumes, "--fork-session must be used with --resume or --continue."
    yield (
        flags.session_id is not None and not _is_uuid(flags.session_id),
        f'Invalid --session-id: "{flags.session_id}". Must be a valid UUID such as {uuid.UUID(int=1)}.',
    )
    yield from _schema_rules(flags, stdin_is_terminal)
    yield from _absent(flags)


def _schema_rules(flags: Flags, stdin_is_terminal: bool) -> Iterable[tuple[bool, str]]:
    has_schema = bool(flags.json_schema)  # an empty one is told apart later, as a mistake of its own
    yield (
        has_schema and flags.prompt_interactive is not None,
        "--json-schema cannot be used with --prompt-interactive (-i); structured output only terminates the "
        "non-interactive flow.",
    )
    yield (
        has_schema and flags.input_format == "stream-json",
        '--json-schema cannot be used with --input-format stream-json; the "first structured_output call ends the '
        'session" contract is incompatible with the long-lived stream-json input protocol.',
    )
    yield (
        has_schema and flags.acp,
        "--json-schema cannot be used with --acp; structured output is only honoured by the headless non-interactive "
        "flow.",
    )
    yield (
        has_schema and flags.prompt is None and not flags.query and stdin_is_terminal,
        "--json-schema only applies to non-interactive mode; pass a prompt via -p, as a positional argument, or piped "
        "via stdin.",
    )


def _absent(flags: Flags) -> Iterable[tuple[bool, str]]:
    """What the reference has and a headless run has not; an empty schema is left to be told apart."""
    if flags.json_schema is not None:
        return
    yield flags.prompt_interactive is not None, "--prompt-interactive (-i) is not available: dovetail run is headless."
    yield flags.input_format == "stream-json", "--input-format stream-json is not available: a run has one prompt."
    yield flags.acp, "--acp is not available: dovetail run is headless."


# What names something: nothing is no name. It comes from a variable of a script that is not set, and what was meant to
# restrict a run, or to send it elsewhere, would silently not.
_NAMING = ("workspace", "provider", "model", "base_url", "fallback_model", "add_dir")
_NAMING_TOOLS = ("core_tools", "allowed_tools", "exclude_tools", "allowed_mcp_server_names")


def check_names(flags: Flags) -> None:
    """Raise InputError for a flag that names something and is empty."""
    for name in (*_NAMING, *_NAMING_TOOLS):
        given = getattr(flags, name)
        if given is not None and any(not each.strip() for each in ([given] if isinstance(given, str) else given)):
            raise InputError(f"--{name.replace('_', '-')} names nothing", "", "give it a value, or leave it out")


def split_names(values: Iterable[str]) -> tuple[str, ...]:
    """Names from repeated flags, each of which may hold several between commas outside parentheses.

    A flag without any name is the empty name.
    """
    names: list[str] = []
    for value in values:
        depth, name = 0, ""
        for char in value:
            depth += (char == "(") - (char == ")")
            if char == "," and depth <= 0:
                names.append(name)
                name = ""
            else:
                name += char
        names.append(name)
        if not any(map(str.strip, names)):
            return ("",)
    return tuple(name.strip() for name in names if name.strip())


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
