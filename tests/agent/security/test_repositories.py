"""What git would run after the run is not written in it: wherever the settings of a repository say that it is."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from dovetail.agent.permissions import Rules
from dovetail.agent.sandbox.landlock import landlock_problem
from dovetail.errors import LimitError
from tests.agent.security.test_sandbox import KINDS, World, rules_of

WORKING = [kind for kind in KINDS if kind == "bubblewrap" or not landlock_problem()]


def git(*arguments: str, folder: Path) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git("init", "-q", "--template=", folder=folder)
    (folder / ".git/hooks").mkdir()
    (folder / "sub").mkdir()
    (folder / "sub/b.txt").write_text("beta\n")
    git("add", ".", folder=folder)
    git("commit", "-qm", "first", folder=folder)
    return folder


def refused(base: Path, rules: Rules, kind: str, place: Path) -> None:
    """Neither commands nor file tools can put something of their own into the place."""
    before = place.read_text() if place.is_file() else None
    assert "deny" == rules.decide("write_file", {"file_path": str(place)}, False).verdict
    sandbox = KINDS[kind](rules, False)
    world = World(base, {"PATH": os.environ["PATH"], "HOME": str(base)}, sandbox)
    relative = os.path.relpath(place, world.workspace)
    folder = os.path.dirname(relative) or "."
    for command in (
        f"mkdir -p {folder}; echo pwned > {relative}",
        f"rm -rf {relative} {folder}; mkdir -p {folder}; echo pwned > {relative}",
        f"mv {folder} z; mkdir -p {folder}; echo pwned > {relative}",
        f"ln -s $PWD/sub {folder}; echo pwned > {relative}",
        f"echo pwned > sub/x; ln -f sub/x {relative}; mv -f sub/x {relative}",
    ):
        world.run(command)
        assert (place.read_text() if place.is_file() else "") == (before or "")
    assert "done" in world.run("echo x > sub/new && echo done")
    sandbox.close()
    assert (place.read_text() if place.is_file() else None) == before


# Where hooks and settings will be looked for, although nothing is there yet.
ABSENT = [
    ("core.hooksPath", ".githooks", ".githooks/pre-commit"),
    ("core.hooksPath", "tools/git/hooks", "tools/git/hooks/pre-commit"),
    ("core.hooksPath", ".husky/_", ".husky/pre-commit"),
    ("include.path", "../.gitconfig", ".gitconfig"),
    ("include.path", "../conf/shared", "conf/shared"),
]


@pytest.mark.parametrize("kind", WORKING)
@pytest.mark.parametrize(("key", "value", "place"), ABSENT)
def test_what_git_would_obey_cannot_be_made(tmp_path: Path, kind: str, key: str, value: str, place: str) -> None:
    work = repository(tmp_path / "work")
    git("config", key, value, folder=work)
    refused(tmp_path, rules_of(work, tmp_path), kind, work / place)


@pytest.mark.parametrize("kind", WORKING)
def test_settings_that_settings_include_are_followed(tmp_path: Path, kind: str) -> None:
    work = repository(tmp_path / "work")
    (work / ".gitconfig").write_text('[include]\n\tpath = "conf/more" # mine\n')
    (work / "conf").mkdir()
    (work / "conf/more").write_text("[core]\n\thooksPath = \\\n  tools/hooks\n[include]\n\tpath = more\n")
    git("config", "include.path", "../.gitconfig", folder=work)
    for place in (".gitconfig", "conf/more", "tools/hooks/pre-commit"):
        refused(tmp_path, rules_of(work, tmp_path), kind, work / place)


@pytest.mark.parametrize("kind", WORKING)
def test_the_settings_of_the_user_are_read_too(tmp_path: Path, kind: str) -> None:
    work = repository(tmp_path / "work")
    (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
    refused(tmp_path, rules_of(work, tmp_path), kind, work / ".githooks/pre-commit")


@pytest.mark.parametrize("kind", WORKING)
def test_a_worktree_obeys_the_settings_of_its_repository(tmp_path: Path, kind: str) -> None:
    main = repository(tmp_path / "main")
    git("config", "core.hooksPath", ".githooks", folder=main)
    git("worktree", "add", "-q", str(tmp_path / "work"), folder=main)
    refused(tmp_path, rules_of(tmp_path / "work", tmp_path), kind, tmp_path / "work/.githooks/pre-commit")


@pytest.mark.parametrize("kind", WORKING)
def test_a_folder_of_a_repository_obeys_its_settings(tmp_path: Path, kind: str) -> None:
    top = repository(tmp_path / "top")
    git("config", "core.hooksPath", "work/.husky", folder=top)
    (top / "work/sub").mkdir(parents=True)
    refused(top, rules_of(top / "work", tmp_path), kind, top / "work/.husky/pre-commit")


PROGRAMS = [
    ("core.fsmonitor", "tools/watch"),
    ("filter.x.clean", "python3 tools/watch %f"),
    ("diff.external", "./tools/watch"),
    ("alias.st", "!f() { ./tools/watch; }; f"),
    ("core.sshCommand", "tools/watch -v"),
]


@pytest.mark.parametrize("kind", WORKING)
@pytest.mark.parametrize(("key", "value"), PROGRAMS)
def test_programs_that_settings_name_are_not_written(tmp_path: Path, kind: str, key: str, value: str) -> None:
    work = repository(tmp_path / "work")
    (work / "tools").mkdir()
    (work / "tools/watch").write_text("mine\n")
    git("config", key, value, folder=work)
    refused(tmp_path, rules_of(work, tmp_path), kind, work / "tools/watch")


@pytest.mark.parametrize("kind", WORKING)
def test_a_repository_behind_a_link_is_not_worked_in(tmp_path: Path, kind: str) -> None:
    """A link could be replaced by a repository with hooks of its own."""
    work = repository(tmp_path / "work")
    (work / ".git").rename(tmp_path / "elsewhere")
    (work / ".git").symlink_to(tmp_path / "elsewhere")
    sandbox = KINDS[kind](rules_of(work, tmp_path), False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    with pytest.raises(LimitError, match="symbolic link"):
        world.run("rm .git; git init -q")
    sandbox.close()


def test_settings_that_are_no_files_are_passed_over(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    (work / ".git/config").unlink()
    os.mkfifo(work / ".git/config")
    (tmp_path / ".gitconfig").mkdir()
    assert "allow" == rules_of(work, tmp_path).decide("write_file", {"file_path": "sub/x"}, False).verdict


@pytest.mark.parametrize("kind", WORKING)
@pytest.mark.parametrize(
    ("link", "target", "place"),
    [
        (".githooks", "hooks", ".githooks/pre-commit"),
        ("tools", "sub", "tools/hooks/pre-commit"),
        (".githooks", "../elsewhere", ".githooks/pre-commit"),
        ("conf", "sub", "conf/shared"),
        ("sub/link", "hooks", "sub/link/pre-commit"),
        ("sub/link", "../hooks", "sub/link/pre-commit"),
    ],
)
def test_a_link_on_the_way_to_what_git_obeys_is_not_replaced(
    tmp_path: Path, kind: str, link: str, target: str, place: str
) -> None:
    work = repository(tmp_path / "work")
    for folder in ("hooks", "sub/hooks", "../elsewhere"):
        (work / folder).mkdir()
        (work / folder / "pre-commit").write_text("mine\n")
    (work / "sub/shared").write_text("mine\n")
    (work / link).symlink_to(target)
    key = "include.path" if link == "conf" else "core.hooksPath"
    value = f"../{place}" if link == "conf" else os.path.dirname(place)
    git("config", key, value, folder=work)
    (work / "free").mkdir()
    before = (work / place).read_text()
    rules = rules_of(work, tmp_path)
    assert "deny" == rules.decide("write_file", {"file_path": place}, False).verdict
    sandbox = KINDS[kind](rules, False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    for command in (
        f"echo pwned > {place}",
        f"rm {link}; mkdir -p {os.path.dirname(place)}; echo pwned > {place}",
        f"mv {link} free/x; ln -s free {link}; echo pwned > free/pre-commit; cp free/pre-commit {place}",
        f"ln -sfn free {link}; echo pwned > {place}",
    ):
        with suppress(LimitError):
            world.run(command)
        assert before == (work / place).read_text()
    sandbox.close()


@pytest.mark.parametrize("kind", WORKING)
def test_a_program_that_settings_name_by_a_link_is_not_replaced(tmp_path: Path, kind: str) -> None:
    """As filters of notebooks name the Python of a virtual environment."""
    work = repository(tmp_path / "work")
    (work / ".venv/bin").mkdir(parents=True)
    (work / ".venv/bin/python").symlink_to("/bin/sh")
    git("config", "filter.x.clean", f'"{work}/.venv/bin/python" -m x', folder=work)
    sandbox = KINDS[kind](rules_of(work, tmp_path), False)
    world = World(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, sandbox)
    for command in ("ln -sf ../../sub/b.txt .venv/bin/python", "mv .venv z; mkdir -p .venv/bin; cp z .venv/bin/python"):
        world.run(command)
        assert "/bin/sh" == os.readlink(work / ".venv/bin/python")
    assert "done" in world.run("echo x > sub/new && echo done")
    sandbox.close()
