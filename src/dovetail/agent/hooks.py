"""Commands and addresses of the operator that are told about a run and its tool calls, and may stop them.

PreToolUse           before a call that is valid and permitted; may block it
PostToolUse          after a call that succeeded; only `continue: false` takes the result back
PostToolUseFailure   after a call that failed while it ran; may only add context
UserPromptSubmit     before the model is asked; may end the run, or add context to the prompt
Stop                 once the run has come to its end by itself; is only told how

A hook gets JSON on its standard input, and the real arguments: what it writes down is the operator's business. Exit
code 0 with JSON decides, 2 blocks with the reason on standard error; anything else, a crash or too long a wait is a
warning, and the call goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from dovetail.agent.environment import without_keys
from dovetail.agent.settings import HookCommand, HookEvent, Settings, SettingsError, did_you_mean
from dovetail.agent.tools.processes import exited, running
from dovetail.agent.types import ApprovalMode, HookDecision, ToolOutput, ToolUse

EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
COMMAND_TIMEOUT_MS = 60_000
HTTP_TIMEOUT_MS = 600_000
MAX_ANSWER_BYTES = 1 << 20
_SHOWN = 500
_TAIL_S = 0.2


@dataclass(frozen=True, slots=True)
class HookSession:
    """What every hook is told about the run."""

    session_id: str
    transcript_path: Path | None
    cwd: Path
    mode: ApprovalMode


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one hook said, or why it said nothing."""

    fields: Mapping[str, Any]
    blocks: bool = False
    reason: str = ""
    warning: str = ""


class CommandHooks:
    """The hooks of the settings; those of one event run side by side."""

    def __init__(self, settings: Settings, session: HookSession) -> None:
        self._session = session
        self._hooks: dict[str, list[tuple[re.Pattern[str], HookCommand]]] = {event: [] for event in EVENTS}
        if settings.disable_all_hooks:
            return
        for event in EVENTS:
            for index, group in enumerate(settings.hooks.get(event, ())):
                pattern = _matcher(group.matcher, f"/hooks/{event}/{index}/matcher")
                self._hooks[event] += [(pattern, hook) for hook in group.hooks]

    async def pre(self, use: ToolUse, args: Mapping[str, Any]) -> HookDecision:
        """Before a validated and permitted call."""
        answers = await self._ask("PreToolUse", use, args, {})
        return _together(answers, [_refused_before(answer) for answer in answers])

    async def post(self, use: ToolUse, args: Mapping[str, Any], output: ToolOutput) -> HookDecision:
        """After a call that succeeded."""
        response = {"llmContent": output.content, "returnDisplay": output.display or output.content}
        answers = await self._ask("PostToolUse", use, args, {"tool_response": response})
        return _together(answers, [_stopped(answer.fields) for answer in answers])

    async def post_failure(
        self, use: ToolUse, args: Mapping[str, Any], error: str, interrupted: bool = False
    ) -> HookDecision:
        """After a call that failed while it ran."""
        answers = await self._ask("PostToolUseFailure", use, args, {"error": error, "is_interrupt": interrupted})
        return _together(answers, [])

    async def prompt(self, text: str) -> HookDecision:
        """Before the model is asked for the first time."""
        answers = await self._tell("UserPromptSubmit", {"prompt": text}, "")
        return _together(answers, [_refused_before(answer) for answer in answers])

    async def stop(self, reason: str) -> HookDecision:
        """Once the run has come to its end by itself."""
        return _together(await self._tell("Stop", {"termination_reason": reason}, ""), [])

    async def _ask(self, event: str, use: ToolUse, args: Mapping[str, Any], more: Mapping[str, Any]) -> list[_Answer]:
        call = {"tool_name": use.name, "tool_input": args, "tool_use_id": use.id, "tool_call_id": use.id}
        return await self._tell(event, {**call, **more}, use.name)

    async def _tell(self, event: str, more: Mapping[str, Any], tool: str) -> list[_Answer]:
        hooks = [hook for pattern, hook in self._hooks[event] if not tool or pattern.search(tool)]
        if not hooks:
            return []
        session = self._session
        payload = json.dumps(
            {
                "session_id": session.session_id,
                "transcript_path": str(session.transcript_path or ""),
                "cwd": str(session.cwd),
                "hook_event_name": event,
                "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "permission_mode": session.mode,
                **more,
            }
        )
        return list(await asyncio.gather(*(self._one(hook, payload, event) for hook in hooks)))

    async def _one(self, hook: HookCommand, payload: str, event: str) -> _Answer:
        name = f"{event} hook {(hook.command or hook.url)[:80]!r}"
        default = COMMAND_TIMEOUT_MS if hook.type == "command" else HTTP_TIMEOUT_MS
        try:
            async with asyncio.timeout((hook.timeout or default) / 1000):
                if hook.type == "http":
                    return await _post(hook, payload, name)
                return await self._command(hook, payload, name)
        except TimeoutError:
            return _Answer({}, warning=f"{name} took too long and was stopped")
        except Exception as error:  # a hook that cannot run must not stop the run, whatever its reason
            return _Answer({}, warning=f"{name} failed: {type(error).__name__}: {error}")

    async def _command(self, hook: HookCommand, payload: str, name: str) -> _Answer:
        environment = {**without_keys(), "DOVETAIL_PROJECT_DIR": str(self._session.cwd)}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started: dict[str, Any] = {"cwd": self._session.cwd, "env": environment, **pipes}
        async with running("/bin/sh", "-c", hook.command, **started) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            out, err = bytearray(), bytearray()
            reading = asyncio.gather(_collect(process.stdout, out), _collect(process.stderr, err))
            try:
                await _feed(process.stdin, payload)
                code = await exited(process)
                # What the hook left in the background may hold the pipes; the hook itself has said all it had to say.
                await asyncio.wait((reading,), timeout=_TAIL_S)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        return _by_code(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), name)


def check_matchers(settings: Settings, tools: Iterable[str], *, certain: bool = True) -> None:
    """Raise SettingsError for a matcher that is a name, or several with | between them, that no tool has."""
    known = tuple(tools)
    for event, groups in settings.hooks.items():
        for index, group in enumerate(groups if "ToolUse" in event else ()):
            for word in group.matcher.split("|"):
                name = word.removeprefix("^").removesuffix("$")
                if not re.fullmatch(r"\w+", name) or name.startswith("mcp__"):
                    continue
                hint = did_you_mean(name, known)
                if not any(re.search(word, tool) for tool in known) and (hint or certain):
                    raise SettingsError(
                        f"the matcher {name!r} matches no tool{hint}",
                        f"/hooks/{event}/{index}/matcher",
                        "use the name of a tool, such as run_shell_command",
                    )


async def _feed(stdin: asyncio.StreamWriter, payload: str) -> None:
    try:
        stdin.write(payload.encode())
        await stdin.drain()
        stdin.close()
    except (BrokenPipeError, ConnectionResetError):  # a hook need not read what it is told
        pass


async def _collect(stream: asyncio.StreamReader, kept: bytearray) -> None:
    """Read a stream to its end, and keep no more of it than a hook can reasonably have to say."""
    while chunk := await stream.read(1 << 16):
        kept += chunk[: MAX_ANSWER_BYTES - len(kept)]


def _by_code(code: int, out: str, err: str, name: str) -> _Answer:
    if code == 2:
        fields = _object(err) or {}
        reason = str(fields.get("reason") or fields.get("stopReason") or "") or err.strip()
        return _Answer(fields, blocks=True, reason=reason)
    if code != 0:
        return _Answer({}, warning=f"{name} ended with code {code}: {err.strip()[:_SHOWN]}")
    answer = _object(out)
    if answer is None:  # plain text is a word to the operator
        return _Answer({}, warning=out.strip()[:_SHOWN])
    return _Answer(answer, warning=str(answer.get("systemMessage") or ""))


async def _post(hook: HookCommand, payload: str, name: str) -> _Answer:
    import httpx2

    # Keys belong into the environment, not into settings files.
    given = {name: os.path.expandvars(value) for name, value in hook.headers.items()}
    headers = {"Content-Type": "application/json", **given}
    async with httpx2.AsyncClient(timeout=None) as client:  # the caller keeps the time
        response = await client.post(hook.url, content=payload.encode(), headers=headers)
    if not response.is_success:
        return _Answer({}, warning=f"{name} answered with status {response.status_code}")
    fields = _object(response.text[:MAX_ANSWER_BYTES])
    return _Answer(fields or {}, warning=str((fields or {}).get("systemMessage") or ""))


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _specific(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    specific = fields.get("hookSpecificOutput")
    return specific if isinstance(specific, dict) else {}


def _stopped(fields: Mapping[str, Any]) -> str | None:
    """The reason why `continue: false` ends the call, None where it is not said."""
    if fields.get("continue") is not False:
        return None
    return str(fields.get("stopReason") or fields.get("reason") or "a hook stopped this")


def _refused_before(answer: _Answer) -> str | None:
    """The reason why a call or a run may not be, None if it may; there is nobody to ask, so "ask" refuses too."""
    if answer.blocks:
        return answer.reason or "a hook blocked this"
    specific = _specific(answer.fields)
    verdict = specific.get("permissionDecision", answer.fields.get("decision"))
    reason = specific.get("permissionDecisionReason") or answer.fields.get("reason")
    if verdict in ("deny", "block"):
        return str(reason or "a hook blocked this")
    if verdict == "ask":
        return str(reason or "a hook asks for approval, which a headless run cannot give")
    return _stopped(answer.fields)


def _together(answers: list[_Answer], refusals: list[str | None]) -> HookDecision:
    reasons = [reason for reason in refusals if reason is not None]
    contexts = [str(context) for answer in answers if (context := _specific(answer.fields).get("additionalContext"))]
    return HookDecision(
        blocked=bool(reasons),
        reason=reasons[0] if reasons else "",
        context="\n".join(contexts),
        warnings=tuple(answer.warning for answer in answers if answer.warning),
    )


def _matcher(text: str, path: str) -> re.Pattern[str]:
    try:
        return re.compile("" if text == "*" else text)
    except re.error as error:
        raise SettingsError(f"{text!r} is no regular expression: {error}", path, "correct the matcher") from error
