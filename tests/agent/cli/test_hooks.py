"""Hooks around the terminal call, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Reply


def so(summary: str = "fine", id: str = "so") -> Call:
    return Call("structured_output", {"summary": summary}, id)


def hook(bench: Bench, event: str, command: str, matcher: str = "structured_output", **more: Any) -> None:
    bench.settings(hooks={event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}]})


def saying(value: Any) -> str:
    return f"echo {shlex.quote(json.dumps(value))}"


ONCE = "test -e seen && exit 0; touch seen;"  # what follows happens at the first call only


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{ONCE} echo 'not like this' >&2; exit 2", "not like this"),
        (f"{ONCE} {saying({'hookSpecificOutput': {'permissionDecision': 'ask'}})}", "asks for approval"),
        (f"{ONCE} {saying({'decision': 'block', 'reason': 'because'})}", "because"),
    ],
)
def test_a_hook_before_the_call_can_block_it_and_the_run_goes_on(bench: Bench, command: str, words: str) -> None:
    """Scenarios 102 and 103; what is denied is listed without its payload."""
    hook(bench, "PreToolUse", command)
    finished = bench.run([Reply(so("first", "1")), Reply(so("second", "2"))])
    assert (0, {"summary": "second"}) == (finished.code, finished.result["structured_result"])
    assert words in bench.answers()["1"]
    (denial,) = finished.result["permission_denials"]
    assert ("structured_output", "1") == (denial["tool_name"], denial["tool_use_id"])
    assert "first" not in json.dumps(denial)


@pytest.mark.parametrize("command", ["sleep 30", "exit 1", "kill -9 $$", "/no/such/program", "echo plain words"])
def test_a_hook_that_fails_does_not_stop_the_call(bench: Bench, command: str) -> None:
    """Scenario 104."""
    hook(bench, "PreToolUse", command, timeout=500)
    assert 0 == bench.run([Reply(so())]).code


def test_a_hook_after_the_call_can_take_the_answer_back(bench: Bench) -> None:
    """Scenario 105."""
    hook(bench, "PostToolUse", f"{ONCE} {saying({'continue': False, 'stopReason': 'no'})}")
    finished = bench.run([Reply(so("first", "1")), Reply(so("second", "2"))])
    assert (0, {"summary": "second"}) == (finished.code, finished.result["structured_result"])
    assert "no" == bench.answers()["1"]


def test_a_block_after_the_call_has_no_force(bench: Bench) -> None:
    """Scenario 106."""
    hook(bench, "PostToolUse", saying({"decision": "block"}))
    assert (0, 1) == (bench.run([Reply(so())]).code, len(bench.received))


def test_hooks_see_valid_calls_only_and_their_real_arguments(bench: Bench) -> None:
    """Scenarios 107 and 108."""
    hook(bench, "PreToolUse", "cat >> hook.log; echo >> hook.log", matcher="*")
    finished = bench.run([Reply(Call("structured_output", {"wrong": 1}, "bad")), Reply(so("the payload"))])
    assert 0 == finished.code
    (told,) = [json.loads(line) for line in (bench.workspace / "hook.log").read_text().splitlines() if line]
    assert {"summary": "the payload"} == told["tool_input"]
    assert ("PreToolUse", "structured_output", "so") == (
        told["hook_event_name"],
        told["tool_name"],
        told["tool_use_id"],
    )
    assert {"session_id", "transcript_path", "cwd", "timestamp", "permission_mode"} <= told.keys()


def test_context_of_a_hook_reaches_the_model(bench: Bench) -> None:
    bench.write("a.txt")
    context = {"hookSpecificOutput": {"additionalContext": "<mind> the gap"}}
    hook(bench, "PostToolUse", saying(context), matcher="read_file")
    bench.run([Reply(Call("read_file", {"file_path": "a.txt"}, "r")), Reply(so())])
    assert bench.answers()["r"].endswith("&lt;mind&gt; the gap")


def test_a_hook_before_the_run_adds_to_the_prompt_or_ends_the_run(bench: Bench) -> None:
    added = {"hookSpecificOutput": {"additionalContext": "the branch is frozen"}}
    hook(bench, "UserPromptSubmit", f"cat > told; {saying(added)}", matcher="")
    assert 0 == bench.run([Reply(so())]).code
    told = json.loads((bench.workspace / "told").read_text())
    assert ("UserPromptSubmit", "do it") == (told["hook_event_name"], told["prompt"])
    assert "do it\n\nthe branch is frozen" == bench.received[0]["messages"][-1]["content"]
    hook(bench, "UserPromptSubmit", "echo 'not on Fridays' >&2; exit 2", matcher="")
    finished = bench.run([])
    assert (45, "prompt_blocked", []) == (finished.code, finished.result["termination_reason"], bench.received)
    assert "not on Fridays" in finished.stderr
    hook(bench, "UserPromptSubmit", "exit 1", matcher="")
    assert 0 == bench.run([Reply(so())]).code


def test_a_hook_at_the_end_is_told_how_the_run_ended(bench: Bench) -> None:
    hook(bench, "Stop", "cat > told; exit 2", matcher="")
    for replies, code, reason in (([Reply(so())], 0, "structured_output"), ([Reply(status=400)], 69, "api_error")):
        assert code == bench.run(replies).code
        told = (bench.workspace / "told").read_text()
        assert reason == json.loads(told)["termination_reason"]
        assert "fine" not in told
        (bench.workspace / "told").unlink()
    assert 53 == bench.run([], "--max-session-turns", "0").code
    assert "max_turns" == json.loads((bench.workspace / "told").read_text())["termination_reason"]
