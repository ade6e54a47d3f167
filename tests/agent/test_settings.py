"""Settings files: which of them count, in which order, and what a project cannot grant itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dovetail.agent.settings import SettingsError, load_settings, read_mcp_config, set_trust


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path]:
    workspace, home = tmp_path / "work", tmp_path / "home"
    (workspace / ".dovetail").mkdir(parents=True)
    home.mkdir()
    return workspace, home


def write(folder: Path, value: Any, name: str = "settings.json") -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


def test_no_files_are_the_defaults(place: tuple[Path, Path]) -> None:
    settings = load_settings(*place)
    assert settings.trusted
    assert "text" == settings.output.format
    assert -1 == settings.model.max_session_turns


def test_the_project_speaks_after_the_user_and_rules_add_up(place: tuple[Path, Path]) -> None:
    workspace, home = place
    write(home, {"permissions": {"deny": ["a"], "ask": ["b"]}, "model": {"name": "m", "maxToolCalls": 3}})
    write(
        workspace / ".dovetail",
        {"permissions": {"deny": ["c"]}, "model": {"maxToolCalls": 5}, "tools": {"approvalMode": "AUTO_EDIT"}},
    )
    settings = load_settings(workspace, home, trust_project=True)
    assert ("a", "c") == settings.permissions.deny
    assert ("b",) == settings.permissions.ask
    assert ("m", 5) == (settings.model.name, settings.model.max_tool_calls)
    assert "auto-edit" == settings.tools.approval_mode


def test_hooks_of_both_files_run(place: tuple[Path, Path]) -> None:
    workspace, home = place
    hook = {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "true"}]}]}
    write(home, {"hooks": hook})
    write(workspace / ".dovetail", {"hooks": hook})
    assert 2 == len(load_settings(workspace, home, trust_project=True).hooks["PreToolUse"])


def test_a_bare_run_reads_nothing_but_trust(place: tuple[Path, Path]) -> None:
    workspace, home = place
    write(home, {"permissions": {"deny": ["a"]}, "security": {"folderTrust": {"enabled": True}}})
    settings = load_settings(workspace, home, bare=True)
    assert () == settings.permissions.deny
    assert not settings.trusted


TRUST = [
    ({}, False),
    ({"WORK": "TRUST_FOLDER"}, True),
    ({"PARENT": "TRUST_FOLDER"}, True),
    ({"WORK": "TRUST_PARENT"}, True),
    ({"WORK": "DO_NOT_TRUST", "PARENT": "TRUST_FOLDER"}, False),
    ({"WORK": "TRUST_FOLDER", "PARENT": "DO_NOT_TRUST"}, True),
    ({"WORK/sub": "TRUST_FOLDER"}, False),
]


@pytest.mark.parametrize(("folders", "trusted"), TRUST)
def test_the_nearest_word_on_a_folder_decides_its_trust(
    place: tuple[Path, Path], folders: dict[str, str], trusted: bool
) -> None:
    workspace, home = place
    names = {
        key.replace("WORK", str(workspace)).replace("PARENT", str(workspace.parent)): v for key, v in folders.items()
    }
    write(home, {"security": {"folderTrust": {"enabled": True}}})
    write(home, names, "trustedFolders.json")
    write(workspace / ".dovetail", {"permissions": {"allow": ["Bash"]}})
    settings = load_settings(workspace, home)
    assert trusted == settings.trusted
    assert (("Bash",) if trusted else ()) == settings.permissions.allow


def test_a_project_cannot_declare_itself_trusted(place: tuple[Path, Path]) -> None:
    workspace, home = place
    write(home, {"security": {"folderTrust": {"enabled": True}}})
    write(workspace / ".dovetail", {"security": {"folderTrust": {"enabled": False}}})
    settings = load_settings(workspace, home)
    assert (False, ("security",)) == (settings.trusted, settings.unused)
    write(workspace / ".dovetail", {"trusted": True})
    with pytest.raises(SettingsError, match="no setting 'trusted'"):
        load_settings(workspace, home)


def test_variables_of_the_environment_are_put_into_servers(
    place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, home = place
    monkeypatch.setenv("TOKEN", "t0")
    monkeypatch.delenv("NOT_SET", raising=False)
    write(
        home,
        {
            "mcpServers": {"s": {"httpUrl": "http://x", "headers": {"A": "Bearer ${TOKEN}", "B": "$NOT_SET"}}},
            "permissions": {"deny": ["Bash(echo $TOKEN)"]},
        },
    )
    settings = load_settings(workspace, home)
    assert {"A": "Bearer t0", "B": "$NOT_SET"} == settings.mcp_servers["s"].headers
    assert ("Bash(echo $TOKEN)",) == settings.permissions.deny


MALFORMED = [
    ("{", "not valid JSON", "line 1"),
    ("[]", "an object is expected", "settings.json"),
    ('{"tools": {"approvalMode": "sometimes"}}', "Input should be", "/tools/approvalMode"),
    ('{"permissions": {"deny": "x"}}', "valid array", "/permissions/deny"),
    ("[" * 100_000, "not valid JSON", "settings.json"),
    ('{"permissions": {"deny": ["Read(a)"]}, "permissions": {}}', "'permissions' stands twice", "settings.json"),
    ('{"tools": {"webFetch": true, "web_fetch": false}}', "'webFetch' stands twice", "/tools"),
    ('{"model": {"maxToolCalls": "5"}}', "valid integer", "/model/maxToolCalls"),
    ('{"model": {"maxToolCalls": true}}', "valid integer", "/model/maxToolCalls"),
    ('{"model": {"maxToolCalls": -2}}', "greater than or equal to -1", "/model/maxToolCalls"),
    ('{"model": {"maxCostUsd": "1"}}', "valid number", "/model/maxCostUsd"),
    ('{"tools": {"sandboxNetwork": "no"}}', "valid boolean", "/tools/sandboxNetwork"),
    ('{"disableAllHooks": 1}', "valid boolean", "/disableAllHooks"),
]


@pytest.mark.parametrize(("text", "problem", "path"), MALFORMED)
def test_a_malformed_file_is_told_with_its_place(place: tuple[Path, Path], text: str, problem: str, path: str) -> None:
    workspace, home = place
    write(home, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(workspace, home)
    assert problem in caught.value.problem
    assert path in caught.value.path


def test_an_error_never_quotes_the_file(place: tuple[Path, Path]) -> None:
    workspace, home = place
    write(home, '{"mcpServers": {"s": {"headers": {"A": 12345678}}}}')
    with pytest.raises(SettingsError) as caught:
        load_settings(workspace, home)
    assert "12345678" not in str(caught.value)


def test_the_servers_of_a_flag_come_as_text_or_file(tmp_path: Path) -> None:
    inner = {"s": {"command": "x", "args": ["y"]}}
    write(tmp_path, {"mcpServers": inner}, "servers.json")
    for text in (json.dumps(inner), json.dumps({"mcpServers": inner}), str(tmp_path / "servers.json")):
        assert ("y",) == read_mcp_config(text)["s"].args
    with pytest.raises(SettingsError, match="no file"):
        read_mcp_config(str(tmp_path / "absent.json"))
    with pytest.raises(SettingsError, match="object"):
        read_mcp_config('{"mcpServers": []}')


GIVES_POWER: list[tuple[dict[str, Any], str]] = [
    ({"model": {"baseUrl": "http://x"}}, "model.baseUrl"),
    ({"model": {"base_url": "http://x"}}, "model.baseUrl"),
    ({"model": {"provider": "openai"}}, "model.provider"),
    ({"model": {"name": "m"}}, "model.name"),
    ({"model": {"maxToolCalls": 100}}, "model.maxToolCalls"),
    ({"model": {"maxToolCalls": -1}}, "model.maxToolCalls"),
    ({"model": {"maxSessionTurns": -1}}, "model.maxSessionTurns"),
    ({"model": {"maxTokensTotal": -1}}, "model.maxTokensTotal"),
    ({"model": {"maxCostUsd": -0.5}}, "model.maxCostUsd"),
    ({"model": {"maxToolCallsPerTurn": 0}}, "model.maxToolCallsPerTurn"),
    ({"model": {"maxToolCallsPerTurn": 5000}}, "model.maxToolCallsPerTurn"),
    ({"model": {"maxRetries": 100}}, "model.maxRetries"),
    ({"model": {"maxOutputTokens": 10**9}}, "model.maxOutputTokens"),
    ({"mcpServers": {"s": {"command": "x"}}}, "mcpServers"),
    ({"hooks": {"PreToolUse": [{"hooks": [{"command": "x"}]}]}}, "hooks"),
    ({"disableAllHooks": True}, "disableAllHooks"),
    ({"permissions": {"allow": ["Bash"]}}, "permissions.allow"),
    ({"tools": {"allowed": ["Bash"]}}, "tools.allowed"),
    ({"tools": {"core": ["run_shell_command"]}}, "tools.core"),
    ({"tools": {"approvalMode": "yolo"}}, "tools.approvalMode"),
    ({"tools": {"approvalMode": "AUTO_EDIT"}}, "tools.approvalMode"),
    ({"tools": {"webFetch": True}}, "tools.webFetch"),
    ({"tools": {"sandbox": "off"}}, "tools.sandbox"),
    ({"tools": {"sandboxNetwork": True}}, "tools.sandboxNetwork"),
    ({"tools": {"keepEnvironment": ["OPENAI_API_KEY"]}}, "tools.keepEnvironment"),
    ({"tools": {"shellTimeoutSeconds": 9000}}, "tools.shellTimeoutSeconds"),
    ({"context": {"includeDirectories": ["/"]}}, "context.includeDirectories"),
    ({"mcp": {"allowed": ["s"]}}, "mcp.allowed"),
    ({"telemetry": {"enabled": False}}, "telemetry.enabled"),
    ({"general": {"chatRecording": False}}, "general.chatRecording"),
]


@pytest.mark.parametrize(("project", "name"), GIVES_POWER)
def test_what_gives_power_counts_only_where_the_user_trusts_the_project(
    place: tuple[Path, Path], project: dict[str, Any], name: str
) -> None:
    workspace, home = place
    limits = {"maxToolCalls": 10, "maxSessionTurns": 10, "maxTokensTotal": 10, "maxCostUsd": 1}
    write(home, {"model": limits, "tools": {"shellTimeoutSeconds": 60}})
    before = load_settings(workspace, home)
    write(workspace / ".dovetail", project)
    untrusted = load_settings(workspace, home)
    assert (name,) == untrusted.unused
    assert before == untrusted.model_copy(update={"unused": ()})
    set_trust(workspace, True, home)
    trusted = load_settings(workspace, home)
    assert () == trusted.unused
    assert before != trusted
    set_trust(workspace, False, home)
    assert (name,) == load_settings(workspace, home).unused


RESTRICTS: list[tuple[dict[str, Any], str, Any]] = [
    ({"permissions": {"deny": ["Edit"]}}, "permissions.deny", ("Bash(rm *)", "Edit")),
    ({"permissions": {"ask": ["Edit"]}}, "permissions.ask", ("Edit",)),
    ({"permissions": {"deny": []}}, "permissions.deny", ("Bash(rm *)",)),
    ({"tools": {"exclude": ["edit"]}}, "tools.exclude", ("glob", "edit")),
    ({"tools": {"exclude": []}}, "tools.exclude", ("glob",)),
    ({"tools": {"disabled": ["edit"]}}, "tools.disabled", ("edit",)),
    ({"tools": {"approvalMode": "plan"}}, "tools.approval_mode", "plan"),
    ({"tools": {"sandbox": "required"}}, "tools.sandbox", "required"),
    ({"tools": {"shellTimeoutSeconds": 5}}, "tools.shell_timeout_seconds", 5),
    ({"model": {"maxToolCalls": 3}}, "model.max_tool_calls", 3),
    ({"model": {"maxSessionTurns": 3}}, "model.max_session_turns", 3),
    ({"model": {"maxCostUsd": 0}}, "model.max_cost_usd", 0),
    ({"model": {"maxRetries": 1}}, "model.max_retries", 1),
    ({"mcp": {"excluded": ["s"]}}, "mcp.excluded", ("s",)),
]


@pytest.mark.parametrize(("project", "name", "expected"), RESTRICTS)
def test_any_project_may_restrict(
    place: tuple[Path, Path], project: dict[str, Any], name: str, expected: object
) -> None:
    workspace, home = place
    user = {"permissions": {"deny": ["Bash(rm *)"]}, "tools": {"exclude": ["glob"]}, "model": {"maxToolCalls": 10}}
    write(home, user)
    write(workspace / ".dovetail", project)
    settings = load_settings(workspace, home)
    section, _, field = name.partition(".")
    assert expected == getattr(getattr(settings, section), field)
    assert () == settings.unused


TYPOS = [
    ({"permisions": {"deny": ["Edit"]}}, "permisions", "'permissions'", "/permisions"),
    ({"permissions": {"denny": ["Edit"]}}, "denny", "'deny'", "/permissions/denny"),
    ({"hooks": {"PreToolUs": []}}, "PreToolUs", "'PreToolUse'", "/hooks/PreToolUs"),
    ({"hooks": {"PreToolUse": [{"matchr": "x"}]}}, "matchr", "'matcher'", "/hooks/PreToolUse/0/matchr"),
    ({"hooks": {"PostToolUse": [{"hooks": [{"tmeout": 1}]}]}}, "tmeout", "'timeout'", "/PostToolUse/0/hooks/0/tmeout"),
    ({"mcpServers": {"s": {"comand": "x"}}}, "comand", "'command'", "/mcpServers/s/comand"),
    ({"tools": {"aprovalMode": "plan"}}, "aprovalMode", "'approvalMode'", "/tools/aprovalMode"),
    ({"model": {"maxTolCalls": 1}}, "maxTolCalls", "'maxToolCalls'", "/model/maxTolCalls"),
    ({"security": {"folderTrusted": {}}}, "folderTrusted", "'folderTrust'", "/security/folderTrusted"),
    ({"xyzzy": 1}, "xyzzy", "", "/xyzzy"),
]  # fmt: skip


@pytest.mark.parametrize("of_user", [True, False])
@pytest.mark.parametrize(("value", "key", "hint", "path"), TYPOS)
def test_a_setting_that_does_not_exist_is_an_error(
    place: tuple[Path, Path], value: dict[str, Any], key: str, hint: str, path: str, of_user: bool
) -> None:
    workspace, home = place
    write(home if of_user else workspace / ".dovetail", value)
    with pytest.raises(SettingsError) as caught:
        load_settings(workspace, home)
    assert f"{key!r}" in caught.value.problem
    assert (f"did you mean {hint}" in caught.value.problem) == bool(hint)
    assert caught.value.path.endswith(path)


def test_a_setting_that_is_known_may_have_any_of_its_spellings(place: tuple[Path, Path]) -> None:
    workspace, home = place
    write(home, {"$schema": "x", "disable_all_hooks": True, "tools": {"approval_mode": "plan"}, "hooks": {}})
    settings = load_settings(workspace, home)
    assert (True, "plan") == (settings.disable_all_hooks, settings.tools.approval_mode)


@pytest.mark.parametrize("of_user", [True, False])
@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link", "link to itself", "device"])
def test_settings_that_cannot_be_read_are_not_taken_for_none(
    place: tuple[Path, Path], kind: str, of_user: bool
) -> None:
    """What they forbid would be allowed."""
    workspace, home = place
    file = (home if of_user else workspace / ".dovetail") / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to({"dangling link": "nowhere", "link to itself": "settings.json"}.get(kind, "/dev/zero"))
    with pytest.raises(SettingsError, match="no regular file"):
        load_settings(workspace, home)
