"""Which tools a run has and which calls it makes, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
from typing import Any

from tests.agent.cli.conftest import S1, Bench
from tests.agent.servers import Call, Reply
from tests.agent.warm import Finished

SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))
SHELL, EDITS = {"run_shell_command"}, {"edit", "write_file"}


def tools(finished: Finished) -> set[str]:
    return set(finished.messages[0]["tools"])


def offered(bench: Bench) -> set[str]:
    """What the model was offered in the last run."""
    return {tool["function"]["name"] for tool in bench.received[0]["tools"]}


def test_a_list_of_core_tools_does_not_touch_the_terminal_tool(bench: Bench) -> None:
    """Scenario 86."""
    finished = bench.run([SO], "--core-tools", "read_file")
    assert 0 == finished.code
    assert {"read_file", "structured_output"} <= tools(finished) == offered(bench)
    assert not {"glob", "grep_search", "list_directory"} & tools(finished)


def test_a_denied_terminal_tool_stops_the_run_at_start_up(bench: Bench) -> None:
    """Scenarios 87, 88 and 89: the reference lets the run go on and fail."""
    flags = ("-p", "x", "--json-schema", json.dumps(S1), "--provider", "speaker", "-o", "json")
    denied: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["--exclude-tools", "structured_output"]),
        ({}, ["--bare", "--exclude-tools", "structured_output"]),
        ({"permissions": {"deny": ["structured_output"]}}, []),
        ({"permissions": {"ask": ["structured_output"]}}, []),
        ({"tools": {"disabled": ["structured_output"]}}, []),
    ]
    for settings, more in denied:
        bench.settings(**settings)
        finished = bench.command(*flags, *more)
        assert (52, "configuration") == (finished.code, finished.result["termination_reason"])
        assert "needs the tool structured_output, but the rule" in finished.stderr
    bench.settings(permissions={"deny": ["structured_output"]})
    bare = bench.run([SO], "--bare")
    assert 0 == bare.code
    assert "structured_output" in tools(bare)


def test_a_bare_run_has_few_tools(bench: Bench) -> None:
    """Scenario 90; notebooks and goals are things that only the reference has."""
    assert {"read_file", "edit", "run_shell_command", "structured_output"} == tools(bench.run([SO], "--bare"))


def test_approval_modes_remove_what_would_have_to_be_asked_for(bench: Bench) -> None:
    """Scenarios 91, 92, 93 and 96."""
    for mode in ("plan", "default", "auto"):
        finished = bench.run([SO], "--approval-mode", mode)
        assert 0 == finished.code
        assert not (SHELL | EDITS) & tools(finished)
        assert mode == finished.messages[0]["permission_mode"]
    assert tools(bench.run([SO], "--approval-mode", "auto-edit")) >= EDITS
    assert not SHELL & tools(bench.run([SO], "--approval-mode", "auto-edit"))
    assert tools(bench.run([SO], "-y")) >= SHELL | EDITS
    allowed = bench.run([SO], "--approval-mode", "default", "--allowed-tools", "run_shell_command")
    assert SHELL <= tools(allowed)


def test_a_call_that_would_have_to_be_asked_for_is_denied_and_the_run_goes_on(bench: Bench) -> None:
    """Scenarios 80 and 94."""
    bench.write("a.txt")
    bench.settings(permissions={"ask": ["read_file"]})
    call = Call("read_file", {"file_path": "a.txt"}, "r")
    finished = bench.run([Reply(call), SO])
    assert 0 == finished.code
    denial = {"tool_name": "read_file", "tool_use_id": "r", "tool_input": {"file_path": "a.txt"}}
    assert [denial] == finished.result["permission_denials"]
    assert finished.results()["r"]["is_error"]
    text = bench.run([Reply(call), SO], form="text")
    assert 'Warning: Tool "read_file" requires user approval' in text.stderr


def test_a_rule_on_some_commands_leaves_the_others(bench: Bench) -> None:
    """Scenario 95."""
    bench.settings(permissions={"deny": ["Bash(rm *)"]})
    bench.write("x")
    calls = [Call("run_shell_command", {"command": command}, command) for command in ("rm x", "ls", "echo `rm x`")]
    finished = bench.run([Reply(*calls), SO], "-y")
    assert 0 == finished.code
    assert [True, False, True, False] == [block["is_error"] for block in finished.results().values()]
    assert (bench.workspace / "x").exists()
    assert ["rm x", "echo `rm x`"] == [denial["tool_use_id"] for denial in finished.result["permission_denials"]]


def test_an_untrusted_folder_takes_no_mode_that_approves_by_itself(bench: Bench) -> None:
    """Scenario 97."""
    bench.settings(security={"folderTrust": {"enabled": True}})
    finished = bench.run([SO], "--yolo", form="stream-json")
    assert (0, "default") == (finished.code, finished.messages[0]["permission_mode"])
    assert 'Approval mode "yolo" is not used in an untrusted folder' in finished.stderr


def test_files_outside_the_workspace_are_out_of_reach(bench: Bench) -> None:
    (bench.home / "secret").write_text("payload")
    (bench.workspace / "link").symlink_to(bench.home / "secret")
    paths = ["../home/secret", str(bench.home / "secret"), "link"]
    calls = [Call("read_file", {"file_path": path}, f"{index}") for index, path in enumerate(paths)]
    finished = bench.run([Reply(*calls), SO])
    assert [True, True, True, False] == [block["is_error"] for block in finished.results().values()]
    assert "payload" not in json.dumps(bench.received)
