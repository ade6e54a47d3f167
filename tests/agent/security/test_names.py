"""One file under several names, and files that nobody would name: what rules forbid stays forbidden."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dovetail.agent.permissions import Rules, ToolFlags
from dovetail.agent.settings import ContextSettings, PermissionSettings, Settings
from dovetail.agent.types import ToolError
from tests.agent.security.test_repositories import WORKING, repository
from tests.agent.security.test_sandbox import KINDS, SECRET, World
from tests.agent.tools.conftest import TOOLS, context_in, run


def rules_of(workspace: Path, home: Path, outside: tuple[Path, ...] = (), **lists: tuple[str, ...]) -> Rules:
    context = ContextSettings(include_directories=tuple(map(str, outside)))
    settings = Settings(permissions=PermissionSettings(**lists), context=context)
    return Rules.of(settings, ToolFlags(approval_mode="yolo"), workspace, home=home)


def says(rules: Rules, tool: str, **args: Any) -> str:
    """What a tool answers, or why it does not."""
    if rules.decide(tool, args, tool.startswith("read")).verdict != "allow":
        return "refused"
    try:
        return run(TOOLS[tool], args, context_in(rules.workspace, permissions=rules)).content
    except ToolError as error:
        return str(error)


def files(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


# What a rule forbids, the file that it means, and how another name of that file came to be.
FORBIDDEN = [
    ("Read(.env)", ".env"),
    ("Read(secrets/**)", "secrets/deep/key"),
    ("Read(secrets)", "secrets/deep/key"),
    ("Read(**/*.pem)", "certs/a.pem"),
    ("Read({certs,x}/*.p?m)", "certs/a.pem"),
]


@pytest.mark.parametrize("listed", ["deny", "ask"])
@pytest.mark.parametrize(("rule", "name"), FORBIDDEN)
def test_file_tools_read_no_other_name_of_a_forbidden_file(tmp_path: Path, rule: str, name: str, listed: str) -> None:
    work = files(tmp_path / "work", a_txt="alpha", _env=SECRET, secrets__deep__key=SECRET, certs__a_pem=SECRET)
    os.link(work / name, work / "plain")
    os.link(work / "a.txt", work / "b.txt")
    rules = rules_of(work, tmp_path, **{listed: (rule,)})
    assert SECRET not in says(rules, "read_file", file_path="plain")
    assert SECRET not in says(rules, "read_file", file_path="./plain/../plain")
    assert "plain" not in says(rules, "grep_search", pattern="SECRET")
    assert "alpha" == says(rules, "read_file", file_path="b.txt")
    assert SECRET == says(rules_of(work, tmp_path), "read_file", file_path="plain")


@pytest.mark.parametrize("rule", ["Read(secrets)", "Read(secrets/**)", "Read(secrets/*.txt)", "Read(secrets/a.txt)"])
def test_a_rule_about_a_link_is_one_about_what_it_leads_to(tmp_path: Path, rule: str) -> None:
    work = files(tmp_path / "work", data__a_txt=SECRET, other__a_txt="alpha")
    (work / "secrets").symlink_to("data")
    rules = rules_of(work, tmp_path, deny=(rule,))
    for name in ("secrets/a.txt", "data/a.txt", str(work / "data/a.txt"), "other/../data/a.txt"):
        assert SECRET not in says(rules, "read_file", file_path=name)
    assert "data" not in says(rules, "grep_search", pattern="SECRET")
    assert "alpha" == says(rules, "read_file", file_path="other/a.txt")
    assert "deny" == rules.decide("run_shell_command", {"command": "cat data/a.txt"}, False).verdict


@pytest.mark.parametrize("name", [".ENV", ".Env", "SECRETS/deep/key"])
def test_a_rule_forbids_however_a_name_is_capitalized(tmp_path: Path, name: str) -> None:
    """On some file systems it is the same file."""
    rules = rules_of(tmp_path, tmp_path, deny=("Read(.env)", "Edit(.env)", "Read(secrets/**)", "Edit(Secrets)"))
    for tool in ("read_file", "write_file"):
        assert "deny" == rules.decide(tool, {"file_path": name, "content": ""}, False).verdict


KEPT = [".ssh/id_ed25519", ".aws/credentials", ".netrc", ".claude.json", ".config/gh/hosts.yml"]


@pytest.mark.parametrize("name", KEPT)
def test_places_of_keys_are_closed_where_the_home_folder_is_the_workspace(tmp_path: Path, name: str) -> None:
    files(tmp_path, a_txt=SECRET)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(SECRET)
    (tmp_path / "link").symlink_to(name)
    rules = rules_of(tmp_path, tmp_path)
    for path in (name, str(tmp_path / name), "link"):
        assert SECRET not in says(rules, "read_file", file_path=path)
        says(rules, "write_file", file_path=path, content="mine")
    assert (tmp_path / name).read_text() == SECRET
    assert "a.txt:1" in says(rules, "grep_search", pattern="SECRET")
    assert name not in says(rules, "grep_search", pattern="SECRET")
    opened = rules_of(tmp_path, tmp_path, allow=(f"Read(~/{name})",))
    assert SECRET == says(opened, "read_file", file_path=name)
    inside = rules_of((tmp_path / name).parent, tmp_path)
    assert (inside.workspace == tmp_path) or SECRET == says(inside, "read_file", file_path=str(tmp_path / name))


PROCESS = ["/proc/self/environ", "/proc/thread-self/environ", "/proc/{own}/cmdline", "/proc/1/environ"]


@pytest.mark.parametrize("name", PROCESS)
def test_file_tools_do_not_look_into_processes(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = name.format(own=os.getpid())
    (tmp_path / "link").symlink_to(name)
    wide = [
        rules_of(tmp_path, tmp_path, outside=(Path("/"),)),
        rules_of(tmp_path, tmp_path, allow=("Read(//**)",)),
        rules_of(Path("/"), tmp_path),
    ]
    for rules in wide:
        for path in (name, str(tmp_path / "link"), f"/proc/self/root{name}"):
            assert "deny" == rules.allows_path(Path(path), write=False).verdict


def world_of(base: Path, rules: Rules, kind: str) -> World:
    """A world in a sandbox that was seen to hold."""
    world = World(base, {"PATH": os.environ["PATH"], "HOME": str(base)}, KINDS[kind](rules, False))
    canary = base / "canary"
    assert "alive" in world.run(f"touch '{canary}'; echo alive")
    assert not canary.exists()
    return world


@pytest.mark.parametrize("kind", WORKING)
def test_commands_read_no_other_name_of_what_is_hidden(tmp_path: Path, kind: str) -> None:
    work = files(tmp_path / "work", secrets__deep__key=SECRET, sub__a_txt="alpha")
    os.link(work / "secrets/deep/key", work / "sub/plain")
    world = world_of(tmp_path, rules_of(work, tmp_path, deny=("Read(secrets/**)",)), kind)
    for command in (
        "cat sub/plain",
        "grep -r SECRET-7 .",
        "cp sub/plain sub/x; cat sub/x",
        "mv sub new; cat new/plain",
    ):
        assert SECRET not in world.run(command)
    assert "alpha" in world.run("cat sub/a.txt")
    world.sandbox.close()


@pytest.mark.parametrize("kind", WORKING)
@pytest.mark.parametrize("name", ["locked.toml", ".git/hooks/pre-commit", ".git/config", ".dovetail/settings.json"])
def test_commands_write_no_other_name_of_what_is_protected(tmp_path: Path, kind: str, name: str) -> None:
    work = repository(tmp_path / "work")
    files(work, locked_toml="mine\n", _dovetail__settings_json="{}\n")
    (work / ".git/hooks/pre-commit").write_text("# mine\n")
    os.link(work / name, work / "sub/plain")
    (work / "free").mkdir()
    before = (work / name).read_text()
    world = world_of(tmp_path, rules_of(work, tmp_path, deny=("Edit(locked.toml)",)), kind)
    for command in (
        "echo x >> sub/plain",
        "sed -i s/mine/x/ sub/plain",
        "truncate -s 0 sub/plain",
        "mv sub y; echo x > y/plain",
    ):
        world.run(command)
        assert before == (work / name).read_text()
    assert "done" in world.run("echo x > free/new && echo done")
    world.sandbox.close()


@pytest.mark.parametrize("kind", WORKING)
def test_the_environment_of_the_run_itself_is_not_written(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in it would be imported by the run, which has keys and no sandbox."""
    work = files(tmp_path / "work", sub__a_txt="alpha")
    packages = work / ".venv/lib/python3/site-packages"
    files(packages, later_py="mine = 1\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    rules = rules_of(work, tmp_path)
    place = packages / "later.py"
    assert "deny" == rules.decide("write_file", {"file_path": str(place)}, False).verdict
    assert "allow" == rules.decide("write_file", {"file_path": ".venv/x"}, False).verdict
    world = world_of(tmp_path, rules, kind)
    for command in (
        "echo x > .venv/lib/python3/site-packages/later.py",
        "echo x > .venv/lib/python3/site-packages/new.py",
        "mv .venv z; mkdir -p .venv/lib/python3/site-packages; echo x > .venv/lib/python3/site-packages/later.py",
        "mv .venv/lib y; cp -r y .venv/lib; echo x > .venv/lib/python3/site-packages/later.py",
    ):
        world.run(command)
        assert "mine = 1\n" == place.read_text()
        assert [place] == sorted(packages.iterdir())
    assert "done" in world.run("echo x > sub/new && echo done")
    world.sandbox.close()


def test_who_may_not_read_a_file_cannot_ask_by_edits_what_is_in_it(tmp_path: Path) -> None:
    files(tmp_path, _env=f"TOKEN={SECRET}\n")
    rules = rules_of(tmp_path, tmp_path, deny=("Read(.env)",))
    guesses = [says(rules, "edit", file_path=".env", old_string=old, new_string="x") for old in (SECRET[:3], "wrong")]
    assert guesses[0] == guesses[1]
    assert "covers" in guesses[0]
    assert "Overwrote" in says(rules, "write_file", file_path=".env", content="x")
