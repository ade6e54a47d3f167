"""Hooks of a run: what they are told, what they may decide, and what a hook that fails does not stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from dovetail.agent.hooks import CommandHooks, HookSession
from dovetail.agent.protocols import Hooks
from dovetail.agent.settings import HookCommand, HookGroup, Settings, SettingsError
from dovetail.agent.types import HookDecision, ToolOutput, ToolUse
from tests.agent.servers.pages import serving
from tests.agent.tools.conftest import gone

USE = ToolUse.of("c1", "structured_output", {"risk": "low"})


def hooks(tmp_path: Path, event: str, *commands: HookCommand | str, matcher: str = "") -> CommandHooks:
    made = tuple(HookCommand(command=one) if isinstance(one, str) else one for one in commands)
    settings = Settings(hooks={event: (HookGroup(matcher=matcher, hooks=made),)})
    return CommandHooks(settings, HookSession("S", tmp_path / "t.jsonl", tmp_path, "auto"))


def pre(made: Hooks, use: ToolUse = USE) -> HookDecision:
    return asyncio.run(made.pre(use, use.value or {}))


def post(made: Hooks) -> HookDecision:
    return asyncio.run(made.post(USE, USE.value or {}, ToolOutput("for the model", "for people")))


def says(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"cat > /dev/null; printf '%s' '{text}'"


def specific(**more: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **more}}


BEFORE = [
    # command, blocked, reason
    ("true", False, ""),
    (says({}), False, ""),
    (says({"decision": "approve"}), False, ""),
    (says({"decision": "allow"}), False, ""),
    (says({"decision": "block", "reason": "no"}), True, "no"),
    (says({"decision": "deny", "reason": "no"}), True, "no"),
    (says(specific(permissionDecision="deny", permissionDecisionReason="never")), True, "never"),
    (says(specific(permissionDecision="allow")), False, ""),
    (says(specific(permissionDecision="ask", permissionDecisionReason="sure?")), True, "sure?"),
    (says({"decision": "block", **specific(permissionDecision="allow")}), False, ""),
    (says({"continue": False, "stopReason": "halt"}), True, "halt"),
    (says({"continue": False, "reason": "halt"}), True, "halt"),
    ("echo because >&2; exit 2", True, "because"),
    ('echo ignored; echo \'{"reason": "from json"}\' >&2; exit 2', True, "from json"),
    ("exit 2", True, "a hook blocked this"),
    ("exit 1", False, ""),
    ("kill -9 $$", False, ""),
    ("no-such-command-anywhere", False, ""),
    (says("plain words"), False, ""),
    (says([1]), False, ""),
]


@pytest.mark.parametrize(("command", "blocked", "reason"), BEFORE)
def test_what_a_hook_decides_before_a_call(tmp_path: Path, command: str, blocked: bool, reason: str) -> None:
    decision = pre(hooks(tmp_path, "PreToolUse", command))
    assert (blocked, reason) == (decision.blocked, decision.reason)


AFTER = [
    (says({"continue": False, "stopReason": "no"}), True, "no"),
    (says({"decision": "block", "reason": "no"}), False, ""),
    ("echo no >&2; exit 2", False, ""),
    ('echo \'{"continue": false, "stopReason": "halt"}\' >&2; exit 2', True, "halt"),
    ("true", False, ""),
]


@pytest.mark.parametrize(("command", "blocked", "reason"), AFTER)
def test_only_continue_false_takes_a_result_back(tmp_path: Path, command: str, blocked: bool, reason: str) -> None:
    decision = post(hooks(tmp_path, "PostToolUse", command))
    assert (blocked, reason) == (decision.blocked, decision.reason)


def test_a_hook_is_told_everything_with_the_real_arguments(tmp_path: Path) -> None:
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
        made = hooks(tmp_path, event, f"cat > {event}.json")
        if event == "PreToolUse":
            pre(made)
        elif event == "PostToolUse":
            post(made)
        else:
            asyncio.run(made.post_failure(USE, USE.value or {}, "it broke", interrupted=True))
        told = json.loads((tmp_path / f"{event}.json").read_text())
        assert event == told["hook_event_name"]
        assert ("S", str(tmp_path), "auto") == (told["session_id"], told["cwd"], told["permission_mode"])
        assert str(tmp_path / "t.jsonl") == told["transcript_path"]
        assert told["timestamp"].endswith("Z")
        assert ("structured_output", {"risk": "low"}, "c1") == (
            told["tool_name"],
            told["tool_input"],
            told["tool_use_id"],
        )
    assert {"llmContent": "for the model", "returnDisplay": "for people"} == json.loads(
        (tmp_path / "PostToolUse.json").read_text()
    )["tool_response"]
    failure = json.loads((tmp_path / "PostToolUseFailure.json").read_text())
    assert ("it broke", True) == (failure["error"], failure["is_interrupt"])


MATCHERS = [
    ("", "edit", True),
    ("*", "edit", True),
    ("edit|write_file", "edit", True),
    ("^edit$", "notebook_edit", False),
    ("mcp__.*", "mcp__srv__do", True),
    ("read", "edit", False),
]


@pytest.mark.parametrize(("matcher", "tool", "fires"), MATCHERS)
def test_a_matcher_chooses_the_tools(tmp_path: Path, matcher: str, tool: str, fires: bool) -> None:
    made = hooks(tmp_path, "PreToolUse", "exit 2", matcher=matcher)
    assert fires == pre(made, ToolUse.of("c", tool, {})).blocked


def test_a_matcher_that_is_no_expression_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        hooks(tmp_path, "PreToolUse", "true", matcher="(")
    assert "/hooks/PreToolUse/0/matcher" == caught.value.path


def test_several_hooks_speak_together(tmp_path: Path) -> None:
    decision = pre(
        hooks(
            tmp_path,
            "PreToolUse",
            says(specific(additionalContext="one")),
            says({"decision": "block", "reason": "no"}),
            says({"systemMessage": "for people", **specific(additionalContext="two")}),
            "echo broken >&2; exit 7",
        )
    )
    assert (True, "no", "one\ntwo") == (decision.blocked, decision.reason, decision.context)
    assert "for people" == decision.warnings[0]
    assert "ended with code 7: broken" in decision.warnings[1]


def test_a_hook_that_takes_too_long_is_ended_and_the_call_goes_on(tmp_path: Path) -> None:
    slow = HookCommand(command="echo $$ > pid; sleep 60", timeout=300)
    decision = pre(hooks(tmp_path, "PreToolUse", slow))
    assert not decision.blocked
    assert "took too long" in decision.warnings[0]
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_hook_that_never_reads_or_leaves_a_child_behind_does_no_harm(tmp_path: Path) -> None:
    big = ToolUse.of("c", "edit", {"text": "x" * 1_000_000})
    assert not pre(hooks(tmp_path, "PreToolUse", "exec <&-; true"), big).blocked
    decision = pre(hooks(tmp_path, "PreToolUse", "echo because >&2; sleep 60 & exit 2"))
    assert (True, "because") == (decision.blocked, decision.reason)


def test_endless_output_of_a_hook_is_bounded(tmp_path: Path) -> None:
    decision = pre(hooks(tmp_path, "PreToolUse", "head -c 5000000 /dev/zero | tr '\\0' x"))
    assert not decision.blocked
    assert len(decision.warnings[0]) < 1000


def test_all_hooks_can_be_turned_off(tmp_path: Path) -> None:
    group = HookGroup(hooks=(HookCommand(command="exit 2"),))
    settings = Settings(hooks={"PreToolUse": (group,)}, disable_all_hooks=True)
    assert not pre(CommandHooks(settings, HookSession("S", None, tmp_path, "auto"))).blocked


class _Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(500 if self.path == "/broken" else 200)
        self.end_headers()
        reason = f"{told['tool_name']} {self.headers['X-Key']}"
        self.wfile.write(json.dumps({"decision": "block", "reason": reason}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    with serving(_Endpoint) as url:
        yield url


def test_an_address_can_be_a_hook(tmp_path: Path, endpoint: str) -> None:
    decision = pre(hooks(tmp_path, "PreToolUse", HookCommand(type="http", url=endpoint, headers={"X-Key": "k"})))
    assert (True, "structured_output k") == (decision.blocked, decision.reason)
    for url in (f"{endpoint}/broken", "http://127.0.0.1:9/"):
        decision = pre(hooks(tmp_path, "PreToolUse", HookCommand(type="http", url=url)))
        assert not decision.blocked
        assert decision.warnings
