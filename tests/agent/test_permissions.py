"""Rules on commands, paths and sites: what is allowed, asked about and denied."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.agent import commands
from dovetail.agent.permissions import Rule, Rules, ToolFlags
from dovetail.agent.protocols import Permissions
from dovetail.agent.settings import PermissionSettings, ServerSettings, Settings, SettingsError, ToolSettings
from dovetail.agent.types import ApprovalMode


def rules(workspace: Path = Path("/w"), mode: ApprovalMode = "yolo", **lists: tuple[str, ...]) -> Rules:
    return Rules.of(
        Settings(permissions=PermissionSettings(**lists)),
        ToolFlags(approval_mode=mode),
        workspace,
        home=Path("/home/me"),
    )


def shell(command: str) -> dict[str, Any]:
    return {"command": command}


def test_rules_are_what_the_loop_expects() -> None:
    permissions: Permissions = rules()
    assert "yolo" == permissions.mode


SHELL_DENIED = [
    # deny rule, command, verdict under yolo
    ("Bash(rm *)", "rm x", "deny"),
    ("Bash(rm *)", "rm", "deny"),
    ("Bash(rm *)", "ls", "allow"),
    ("Bash(rm *)", "rmdir x", "allow"),
    ("Bash(rm*)", "rmdir x", "deny"),
    ("Bash(rm:*)", "rm x", "deny"),
    ("Bash(rm)", "rm x", "deny"),
    ("run_shell_command(rm *)", "rm x", "deny"),
    ("Bash(rm *)", "ls && rm x", "deny"),
    ("Bash(rm *)", "echo $(rm x)", "deny"),
    ("Bash(rm *)", "sudo rm x", "deny"),
    ("Bash(rm *)", "/bin/rm x", "deny"),
    ("Bash(rm *)", "bash -c 'rm x'", "deny"),
    ("Bash(rm *)", "echo 'rm x'", "allow"),
    ("Bash(rm *)", "$X x", "deny"),
    ("Bash(rm *)", "echo 'open", "deny"),
    ("Bash(git push *)", "git push --force", "deny"),
    ("Bash(* --force)", "git push --force", "deny"),
    ("Bash", "ls", "deny"),
    ("Read(secret/**)", "cat secret/key", "deny"),
    ("Read(./.env)", "grep x .env", "deny"),
    ("Read(~/.ssh)", "cat ~/.ssh/id", "deny"),
    ("Edit(config.toml)", "echo x > config.toml", "deny"),
    ("Edit(config.toml)", "cat config.toml", "allow"),
    ("WebFetch(domain:evil.example)", "curl https://www.evil.example/x", "deny"),
    ("WebFetch(domain:evil.example)", "curl https://notevil.example/x", "allow"),
]


@pytest.mark.parametrize(("rule", "command", "verdict"), SHELL_DENIED)
def test_deny_rules_on_commands(rule: str, command: str, verdict: str) -> None:
    assert verdict == rules(deny=(rule,)).decide("run_shell_command", shell(command), False).verdict


SHELL_ALLOWED = [
    # allow rule, command, verdict in default mode
    ("Bash(git *)", "git status", "allow"),
    ("Bash(git *)", "git", "allow"),
    ("Bash(git *)", "git status && git log", "allow"),
    ("Bash(git *)", "git status && rm x", "ask"),
    ("Bash(git *)", "git log $(rm x)", "ask"),
    ("Bash(git *)", "gitk", "ask"),
    ("Bash(git *)", "LD_PRELOAD=x git log", "ask"),
    ("Bash(git *)", "git log > /etc/passwd", "ask"),
    ("Bash(git *)", "git log 2>/dev/null", "allow"),
    ("Bash(git *)", "for f in a; do git add $f; done", "ask"),
    ("Bash(git *)", "git log > log.txt", "ask"),
    ("Bash(git status)", "git status", "allow"),
    ("Bash(git status)", "git status 1<>file", "ask"),
    ("Bash(git status)", "cat <<\\\nE\n$(x)\nE", "ask"),
    ("Bash(git *)", "git commit -m 'open", "ask"),
    ("Bash(git *)", "", "ask"),
    ("Bash", "anything --at all > x", "allow"),
    ("Bash(*)", "anything", "allow"),
    ("edit", "ls", "ask"),
]


@pytest.mark.parametrize(("rule", "command", "verdict"), SHELL_ALLOWED)
def test_allow_rules_on_commands(rule: str, command: str, verdict: str) -> None:
    assert verdict == rules(mode="default", allow=(rule,)).decide("run_shell_command", shell(command), False).verdict


PATHS = [
    # deny rule, tool, path argument, verdict under yolo
    ("Read(secret/**)", "read_file", "secret/a", "deny"),
    ("Read(secret)", "read_file", "secret/a", "deny"),
    ("Read(/secret)", "read_file", "/w/secret/a", "deny"),
    ("Read(//etc/**)", "read_file", "/etc/passwd", "deny"),
    ("Read(~/.ssh/**)", "read_file", "/home/me/.ssh/id", "deny"),
    ("Read(*.pem)", "read_file", "a.pem", "deny"),
    ("Read(**/*.pem)", "read_file", "d/a.pem", "deny"),
    ("Read(secret/**)", "read_file", "open/../secret/a", "deny"),
    ("Read(**)", "read_file", "a/b", "deny"),
    ("Read(.)", "read_file", "a/b", "deny"),
    ("Read(../w/a)", "read_file", "a/b", "deny"),
    ("Read(//)", "read_file", "a", "deny"),
    ("Read(secret/**)", "grep_search", "secret", "deny"),
    ("Read(secret/**)", "write_file", "secret/a", "allow"),
    ("Edit(secret/**)", "write_file", "secret/a", "deny"),
    ("Edit(secret/**)", "edit", "secret/a", "deny"),
    ("edit(secret/**)", "write_file", "secret/a", "deny"),
]


@pytest.mark.parametrize(("rule", "tool", "path", "verdict"), PATHS)
def test_deny_rules_on_paths(rule: str, tool: str, path: str, verdict: str) -> None:
    key = "path" if tool == "grep_search" else "file_path"
    assert verdict == rules(deny=(rule,)).decide(tool, {key: path}, tool != "write_file" and tool != "edit").verdict


@pytest.mark.parametrize("name", ["a*b", "[x]", "{a,b}", "ü ?", "~"])
def test_a_workspace_of_any_name_has_its_rules(tmp_path: Path, name: str) -> None:
    workspace = tmp_path / name
    workspace.mkdir()
    made = rules(workspace, deny=("Read(*.pem)",), allow=("Edit(src/**)",))
    assert "deny" == made.decide("read_file", {"file_path": "x.pem"}, True).verdict
    assert "allow" == made.decide("read_file", {"file_path": "x.txt"}, True).verdict
    assert "allow" == made.decide("edit", {"file_path": str(workspace / "src" / "x")}, False).verdict


def test_deny_follows_links_and_allow_does_not(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    args = {"file_path": "link/key"}
    assert "deny" == rules(tmp_path, deny=("Edit(secret/**)",)).decide("write_file", args, False).verdict
    assert "ask" == rules(tmp_path, "default", allow=("Edit(secret/**)",)).decide("write_file", args, False).verdict
    assert "allow" == rules(tmp_path, "default", allow=("Edit(link/**)",)).decide("write_file", args, False).verdict


def test_deny_comes_before_ask_before_allow() -> None:
    lists = {"allow": ("Edit",), "ask": ("Edit(a*)",), "deny": ("Edit(ab)",)}
    verdicts = [
        rules(mode="default", **lists).decide("edit", {"file_path": path}, False).verdict for path in ("ab", "ac", "x")
    ]
    assert ["deny", "ask", "allow"] == verdicts


def test_an_ask_rule_is_asked_even_under_yolo() -> None:
    assert "ask" == rules(ask=("Edit",)).decide("edit", {"file_path": "x"}, False).verdict
    assert "ask" == rules(ask=("structured_output",)).decide("structured_output", {}, False).verdict


MODES = [
    # mode, tool, read-only, verdict without rules
    ("default", "read_file", True, "allow"),
    ("default", "edit", False, "ask"),
    ("default", "run_shell_command", False, "ask"),
    ("default", "mcp__srv__do", False, "ask"),
    ("default", "mcp__srv__look", True, "allow"),
    ("default", "web_fetch", True, "ask"),
    ("default", "structured_output", False, "allow"),
    ("default", "todo_write", False, "allow"),
    ("auto", "edit", False, "ask"),
    ("auto-edit", "edit", False, "allow"),
    ("auto-edit", "write_file", False, "allow"),
    ("auto-edit", "run_shell_command", False, "ask"),
    ("yolo", "run_shell_command", False, "allow"),
    ("yolo", "mcp__srv__do", False, "allow"),
    ("plan", "edit", False, "deny"),
    ("plan", "read_file", True, "allow"),
    ("plan", "structured_output", False, "allow"),
    ("plan", "agent", False, "allow"),
]


@pytest.mark.parametrize(("mode", "tool", "read_only", "verdict"), MODES)
def test_the_mode_decides_what_no_rule_decides(mode: ApprovalMode, tool: str, read_only: bool, verdict: str) -> None:
    args = shell("ls") if tool == "run_shell_command" else {}
    assert verdict == rules(mode=mode).decide(tool, args, read_only).verdict


def test_plan_mode_stands_above_allow_rules() -> None:
    assert "deny" == rules(mode="plan", allow=("Edit",)).decide("edit", {"file_path": "x"}, False).verdict


SERVERS = [
    ("mcp__srv", "mcp__srv__do", "deny"),
    ("mcp__srv__*", "mcp__srv__do", "deny"),
    ("mcp__srv__do", "mcp__srv__do", "deny"),
    ("mcp__srv__d*", "mcp__srv__do", "deny"),
    ("mcp__srv__do", "mcp__srv__done", "allow"),
    ("mcp__other", "mcp__srv__do", "allow"),
    ("mcp__*", "mcp__srv__do", "deny"),
    ("*", "mcp__srv__do", "deny"),
]


@pytest.mark.parametrize(("rule", "tool", "verdict"), SERVERS)
def test_rules_on_the_tools_of_servers(rule: str, tool: str, verdict: str) -> None:
    assert verdict == rules(deny=(rule,)).decide(tool, {}, False).verdict
    assert verdict == rules(deny=(rule,)).registers(tool, "srv").verdict


def test_rules_find_a_tool_of_a_server_under_its_short_name() -> None:
    made = rules(mode="default", allow=("mcp__srv__do",), deny=("mcp__srv__undo",))
    assert "allow" == made.registers("do", "srv").verdict
    assert "deny" == made.registers("undo", "srv").verdict
    assert "allow" == made.decide("do", {}, False).verdict
    assert "ask" == rules(mode="default", allow=("mcp__srv__do",)).decide("do", {}, False).verdict


def test_the_tools_of_a_trusted_server_need_no_approval() -> None:
    settings = Settings(mcp_servers={"srv": ServerSettings(command="x", trust=True)})
    for bare in (False, True):
        made = Rules.of(settings, ToolFlags(approval_mode="default", bare=bare), Path("/w"))
        assert "allow" == made.decide("mcp__srv__do", {}, False).verdict
        assert "ask" == made.decide("mcp__other__do", {}, False).verdict


def test_a_pattern_on_a_tool_that_has_no_patterns_forbids_and_never_allows() -> None:
    assert "deny" == rules(deny=("mcp__srv__do(x)",)).decide("mcp__srv__do", {}, False).verdict
    assert "ask" == rules(mode="default", allow=("mcp__srv__do(x)",)).decide("mcp__srv__do", {}, False).verdict


def registered(settings: Settings, **flags: Any) -> set[str]:
    made = Rules.of(settings, ToolFlags(**flags), Path("/w"))
    names = "read_file glob edit write_file run_shell_command web_fetch todo_write agent structured_output".split()
    return {name for name in names if made.registers(name).verdict == "allow"}


READING = {"read_file", "glob", "todo_write", "agent", "structured_output"}
CHANGING = {"edit", "write_file", "run_shell_command"}
REGISTERED = [
    # flags, tools offered
    ({}, READING),
    ({"approval_mode": "default"}, READING),
    ({"approval_mode": "plan"}, READING),
    ({"approval_mode": "auto-edit"}, READING | {"edit", "write_file"}),
    ({"approval_mode": "yolo"}, READING | CHANGING),
    ({"yolo": True}, READING | CHANGING),
    ({"allowed": ("run_shell_command",)}, READING | {"run_shell_command"}),
    ({"allowed": ("Bash(git *)",)}, READING | {"run_shell_command"}),
    ({"allowed": ("web_fetch",)}, READING | {"web_fetch"}),
    ({"core": ("read_file",)}, {"read_file", "agent", "structured_output"}),
    ({"core": ("read_file", "edit")}, {"read_file", "edit", "agent", "structured_output"}),
    ({"exclude": ("structured_output", "glob")}, READING - {"structured_output", "glob"}),
    ({"exclude": ("Bash(rm *)",), "yolo": True}, READING | CHANGING),
    ({"bare": True}, {"read_file", "edit", "run_shell_command", "structured_output"}),
    ({"bare": True, "core": ("glob",)}, {"read_file", "edit", "run_shell_command", "structured_output"}),
    ({"bare": True, "exclude": ("structured_output",)}, {"read_file", "edit", "run_shell_command"}),
]


@pytest.mark.parametrize(("flags", "expected"), REGISTERED)
def test_flags_decide_which_tools_are_offered(flags: dict[str, Any], expected: set[str]) -> None:
    assert expected == registered(Settings(), **flags)


def test_settings_decide_which_tools_are_offered_unless_the_run_is_bare() -> None:
    denied = Settings(permissions=PermissionSettings(deny=("structured_output",)))
    assert "structured_output" not in registered(denied)
    assert "structured_output" in registered(denied, bare=True)
    disabled = Settings(tools=ToolSettings(disabled=("structured_output",)))
    assert "structured_output" not in registered(disabled)
    assert "glob" not in registered(Settings(tools=ToolSettings(exclude=("glob",))))


def test_a_disabled_name_is_checked_as_it_stands_after_a_rename() -> None:
    made = Rules.of(Settings(tools=ToolSettings(disabled=("mcp__srv__structured_output",))), ToolFlags(), Path("/w"))
    assert "deny" == made.registers("mcp__srv__structured_output", "srv").verdict


def test_a_denial_names_its_rule() -> None:
    decision = rules(deny=("Bash(rm *)",)).decide("run_shell_command", shell("rm x"), False)
    assert ("Bash(rm *)", "") == (decision.rule, decision.reason)
    unreadable = rules(deny=("Bash(rm *)",)).decide("run_shell_command", shell("echo 'open"), False)
    assert "cannot be checked" in unreadable.reason


def test_an_untrusted_folder_brings_the_mode_down() -> None:
    made = Rules.of(Settings(trusted=False), ToolFlags(yolo=True), Path("/w"))
    assert "default" == made.mode
    assert "untrusted" in made.notes[0]
    assert "plan" == Rules.of(Settings(trusted=False), ToolFlags(approval_mode="plan"), Path("/w")).mode


DEFAULTS = [
    (Settings(), {}, "auto"),
    (Settings(), {"bare": True}, "default"),
    (Settings(), {"safe_mode": True}, "default"),
    (Settings(tools=ToolSettings(approval_mode="yolo")), {}, "yolo"),
    (Settings(tools=ToolSettings(approval_mode="yolo")), {"bare": True}, "default"),
    (Settings(tools=ToolSettings(approval_mode="yolo")), {"approval_mode": "plan"}, "plan"),
]


@pytest.mark.parametrize(("settings", "flags", "mode"), DEFAULTS)
def test_where_the_approval_mode_comes_from(settings: Settings, flags: dict[str, Any], mode: str) -> None:
    assert mode == Rules.of(settings, ToolFlags(**flags), Path("/w")).mode


def test_file_tools_stay_in_the_workspace(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    (inside / "round").symlink_to(inside / "round")
    made = rules(inside)
    assert "allow" == made.allows_path(inside / "a", write=True).verdict
    assert "deny" == made.allows_path(inside / ".." / "out" / "a", write=False).verdict
    assert "deny" == made.allows_path(inside / "link" / "a", write=False).verdict
    assert "deny" == made.allows_path(inside / "a\0b", write=False).verdict
    assert "outside the workspace" in made.allows_path(outside / "a", write=False).reason
    opened = rules(inside, allow=(f"Read(/{outside}/**)",))
    assert "allow" == opened.allows_path(outside / "a", write=False).verdict
    assert "deny" == opened.allows_path(outside / "a", write=True).verdict


def test_a_call_that_leads_out_is_denied_before_it_runs(tmp_path: Path) -> None:
    for tool, args in (
        ("read_file", {"file_path": "/etc/passwd"}),
        ("glob", {"path": ".."}),
        ("edit", {"file_path": "../x"}),
    ):
        decision = rules(tmp_path).decide(tool, args, tool != "edit")
        assert "deny" == decision.verdict
        assert "outside the workspace" in decision.reason
    assert "allow" == rules(tmp_path).decide("glob", {}, True).verdict


def test_fetching_from_the_web_is_off_unless_it_is_turned_on() -> None:
    on = Rules.of(Settings(tools=ToolSettings(web_fetch=True)), ToolFlags(), Path("/w"))
    off = Rules.of(Settings(), ToolFlags(yolo=True), Path("/w"))
    assert ("allow", "deny") == (on.registers("web_fetch").verdict, off.registers("web_fetch").verdict)
    assert "allow" == on.decide("web_fetch", {"url": "https://a.example"}, True).verdict


def test_a_denied_path_is_denied_inside_the_workspace_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("key.pem")
    made = rules(tmp_path, deny=("Read(*.pem)",))
    assert "deny" == made.allows_path(tmp_path / "key.pem", write=False).verdict
    assert "deny" == made.allows_path(tmp_path / "link", write=False).verdict
    assert "allow" == made.allows_path(tmp_path / "key.txt", write=False).verdict


@pytest.mark.parametrize("text", ["", "Bash(", "Bash)x(", "(x)", "Bash(x"])
def test_what_is_no_rule_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Rule.parse(text, "permissions.deny")
    assert "permissions.deny" == caught.value.path


def test_an_allow_rule_is_for_commands_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    made = rules(tmp_path, "default", allow=("Bash(./check)", "Bash(pytest *)", "Bash(npm test)", "Bash(cd *)"))
    for command, folder, verdict in (
        ("./check", None, "allow"),
        ("./check", ".", "allow"),
        ("./check", "sub", "ask"),
        ("cd sub && ./check", None, "ask"),
        ("npm test", "sub", "ask"),
        ("pytest -q", "sub", "allow"),
        ("cd sub && pytest -q", None, "allow"),
    ):
        args = shell(command) | ({"directory": folder} if folder else {})
        assert verdict == made.decide("run_shell_command", args, False).verdict, (command, folder)


def test_a_command_that_is_not_covered_is_told_why() -> None:
    made = rules(mode="default", allow=("Bash(git *)",))
    assert "an expansion" in made.decide("run_shell_command", shell("git log $X"), False).reason
    assert "'rm x'" in made.decide("run_shell_command", shell("git log; rm x"), False).reason


def test_without_the_parser_allow_and_deny_rules_fail_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    commands._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    try:
        for made, verdict in (
            (rules(mode="default", allow=("Bash(git *)",)), "ask"),
            (rules(deny=("Bash(rm *)",)), "deny"),
            (rules(deny=("Read(.env)",)), "deny"),
        ):
            decision = made.decide("run_shell_command", shell("git status"), False)
            assert verdict == decision.verdict
            assert 'pip install "dovetail-lm[agent]"' in decision.reason
        assert "allow" == rules().decide("run_shell_command", shell("git status"), False).verdict
    finally:
        commands._parser.cache_clear()


SITES = [
    # pattern, address, whether an allow rule covers it, whether a deny rule does
    ("domain:good.com", "https://good.com/x", True, True),
    ("domain:good.com", "https://a.good.com", True, True),
    ("domain:good.com", "https://good.com.evil.com/", False, False),
    ("domain:good.com", "https://good.com@evil.com/", False, False),
    ("https://good.com/*", "https://good.com/x?y", True, True),
    ("https://good.com/*", "https://good.com/", True, True),
    ("https://good.com/*", "http://good.com/x", False, False),
    ("https://good.com", "https://good.com", True, True),
    ("https://good.com", "https://good.com/x", False, False),
    ("https://*.good.com/*", "https://a.good.com/x", True, True),
    ("https://*.good.com/*", "https://evil.com/?.good.com/", False, True),
    ("https://*.good.com/*", "https://evil.com#.good.com/", False, True),
    ("https://*.good.com/*", "https://evil.com?.good.com/", False, True),
    ("https://*.good.com/*", "https://x@.good.com/", False, True),
    ("https://good.com*", "https://good.com.evil.com/x", True, True),  # as it is written
    ("https://good.com*", "https://good.com@evil.com/x", False, True),
    ("*good.com*", "https://evil.com/good.com", False, True),
    ("good.com", "https://good.com/", False, False),
]


@pytest.mark.parametrize(("pattern", "address", "allowed", "denied"), SITES)
def test_a_star_in_a_host_stands_for_part_of_the_host(
    tmp_path: Path, pattern: str, address: str, allowed: bool, denied: bool
) -> None:
    rule = f"WebFetch({pattern})"
    for flags, verdict, expected in (
        (ToolFlags(approval_mode="default", allowed=(rule,)), "allow", allowed),
        (ToolFlags(approval_mode="yolo", exclude=(rule,)), "deny", denied),
    ):
        decision = Rules.of(Settings(), flags, tmp_path).decide("web_fetch", {"url": address}, True)
        assert (decision.verdict == verdict) == expected


WORDS = "env sudo xargs parallel git -c sed find -exec ; X=1 -- -x a {} timeout 5 uv run | && sqlite3 sh ''".split()


@given(words=st.lists(st.sampled_from(WORDS), max_size=8), patterns=st.lists(st.sampled_from(WORDS), max_size=3))
def test_any_rule_has_a_verdict_on_any_command(words: list[str], patterns: list[str]) -> None:
    about = tuple(f"Bash({word} *)" for word in patterns)
    for flags in (ToolFlags(approval_mode="default", allowed=about), ToolFlags(yolo=True, exclude=about)):
        rules = Rules.of(Settings(), flags, Path("/nowhere"))
        verdict = rules.decide("run_shell_command", {"command": " ".join(words)}, False).verdict
        assert verdict in ("allow", "ask", "deny")


@pytest.mark.parametrize("command", ["git commit --allow-empty-message -m ''", 'grep "" a.txt'])
def test_an_empty_argument_is_one_like_any_other(command: str) -> None:
    for flags, verdict in (
        (ToolFlags(approval_mode="default", allowed=("Bash(git *)", "Bash(grep *)")), "allow"),
        (ToolFlags(yolo=True, exclude=("Bash(rm *)",)), "allow"),
        (ToolFlags(yolo=True, exclude=("Bash(git *)", "Bash(grep *)")), "deny"),
    ):
        rules = Rules.of(Settings(), flags, Path("/nowhere"))
        assert verdict == rules.decide("run_shell_command", {"command": command}, False).verdict
