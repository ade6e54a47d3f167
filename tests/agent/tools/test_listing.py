"""Tools that list folders and find files by globs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dovetail.agent.permissions import Rule, Rules
from dovetail.agent.tools.listing import MAX_ENTRIES
from dovetail.agent.types import ToolError, ToolLimits
from tests.agent.tools.conftest import Call, context_in


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    for name in ("src/a.py", "src/deep/b.py", "src/c.txt", "build/x.py", "ü/日本.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "link").symlink_to("src")


def test_a_folder_is_listed_folders_first(call: Call) -> None:
    assert ".:\nbuild/\nsrc/\nü/\n.gitignore\nlink -> src" == call("list_directory").content
    assert "src:\ndeep/\nc.txt" == call("list_directory", path="src", ignore=["*.py"]).content


def test_an_empty_or_absent_folder_says_so(call: Call, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert "none is empty." == call("list_directory", path="none").content
    assert "none has no file that matches *." == call("glob", path="none", pattern="*").content
    for tool in ("list_directory", "glob"):
        with pytest.raises(ToolError, match="absent"):
            call(tool, path="absent", pattern="*")


GLOBS = [
    # arguments, lines
    ({"pattern": "**/*.py"}, ["src/a.py", "src/deep/b.py", "ü/日本.py"]),
    ({"pattern": "*.py"}, []),
    ({"pattern": "src/*.{py,txt}"}, ["src/a.py", "src/c.txt"]),
    ({"pattern": "*.py", "path": "src"}, ["src/a.py"]),
    ({"pattern": "./src/*.py"}, ["src/a.py"]),
    ({"pattern": "build/*", "include_ignored": True}, ["build/x.py"]),
    ({"pattern": "**/日*"}, ["ü/日本.py"]),
    ({"pattern": "*.py", "path": "link"}, ["src/a.py"]),
]


@pytest.mark.parametrize(("args", "lines"), GLOBS)
def test_globs_find_files(call: Call, args: dict[str, object], lines: list[str]) -> None:
    content = call("glob", **args).content
    assert lines == (content.splitlines() if lines else [])
    assert lines or "has no file" in content


def test_an_absolute_pattern_in_the_workspace_is_understood(call: Call, tmp_path: Path) -> None:
    assert "src/a.py" == call("glob", pattern=f"{tmp_path.resolve()}/src/*.py").content


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "src/../../*"])
def test_a_pattern_cannot_lead_out(call: Call, pattern: str) -> None:
    with pytest.raises(ToolError, match="leads out"):
        call("glob", pattern=pattern)


def test_files_that_may_not_be_read_are_not_found(call: Call, tmp_path: Path) -> None:
    rules = Rules(workspace=tmp_path.resolve(), deny=(Rule.parse("Read(src/deep/**)"),))
    assert "src/a.py\nü/日本.py" == call("glob", context_in(tmp_path, permissions=rules), pattern="**/*.py").content


def test_a_long_list_is_cut(call: Call, tmp_path: Path) -> None:
    for number in range(MAX_ENTRIES + 5):
        (tmp_path / f"f{number}.md").write_text("")
    assert call("glob", pattern="*.md").content.endswith("\n[5 more]")


def test_a_long_walk_ends_with_the_run_or_its_time(call: Call, tmp_path: Path) -> None:
    ended = context_in(tmp_path)
    ended.cancel.set()
    with pytest.raises(ToolError, match="cancelled"):
        call("glob", ended, pattern="**")
    with pytest.raises(ToolError, match="took longer than 0 s"):
        call("glob", context_in(tmp_path, limits=ToolLimits(timeout_s=0)), pattern="**")


def test_names_that_are_no_text_are_shown_as_far_as_they_go(call: Call, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / os.fsdecode(b"a\xff.md")).write_text("")
    assert "odd/a�.md" == call("glob", pattern="odd/*").content
    assert "a�.md" in call("list_directory", path="odd").content
