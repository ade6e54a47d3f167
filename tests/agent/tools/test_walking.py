"""Walks over folders, with the ignore files of git."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.agent.tools.walking import walk


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def paths(root: Path, top: Path | None = None) -> list[str]:
    return [path for path, _ in walk(root, top)]


IGNORES = [
    # lines of .gitignore, files that are left
    ("", ["a.log", "b/a.log", "b/c/d.txt", "e.txt"]),
    ("*.log", ["b/c/d.txt", "e.txt"]),
    ("/a.log", ["b/a.log", "b/c/d.txt", "e.txt"]),
    ("b/", ["a.log", "e.txt"]),
    ("b", ["a.log", "e.txt"]),
    ("e.txt/", ["a.log", "b/a.log", "b/c/d.txt", "e.txt"]),
    ("b/c", ["a.log", "b/a.log", "e.txt"]),
    ("c/", ["a.log", "b/a.log", "e.txt"]),
    ("**/d.txt", ["a.log", "b/a.log", "e.txt"]),
    ("b/**", ["a.log", "e.txt"]),
    ("*.log\n!a.log", ["a.log", "b/a.log", "b/c/d.txt", "e.txt"]),
    ("*\n!e.txt", ["e.txt"]),
    ("# a.log\n\n  \n[ab].log  ", ["b/c/d.txt", "e.txt"]),
    ("{a,b}.log", ["a.log", "b/a.log", "b/c/d.txt", "e.txt"]),
]


@pytest.mark.parametrize(("lines", "left"), IGNORES)
def test_ignore_files_mean_what_they_mean_to_git(tmp_path: Path, lines: str, left: list[str]) -> None:
    names = ["a.log", "b/a.log", "b/c/d.txt", "e.txt"]
    tree(tmp_path, dict.fromkeys(names, "x") | {".gitignore": lines})
    assert left == [path for path in paths(tmp_path) if path != ".gitignore"]


NAMES = st.sampled_from(["a", "b", "ab", "a.c"])
LINES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "!", "/"]),
        st.sampled_from(["a", "b", "a*", "*", "?", "**/a", "a/b", "a/**", "[ab]", "a/**/b", "*.c", "b/*"]),
        st.sampled_from(["", "/"]),
    ),
)


@settings(max_examples=30)
@given(
    files=st.sets(st.lists(NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8),
    top=st.lists(LINES, max_size=4),
    inner=st.lists(LINES, max_size=2),
)
def test_random_trees_agree_with_git(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], top: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    kept = {file for file in files if not any(other.startswith(f"{file}/") for other in files)}
    tree(root, dict.fromkeys(kept, "x") | {".gitignore": "\n".join(top)})
    if (root / "a").is_dir():
        tree(root, {"a/.gitignore": "\n".join(inner)})
    git = ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null"]
    subprocess.run([*git[:3], "init", "-q"], check=True)
    listed = subprocess.run([*git, "ls-files", "-z", "-o", "--exclude-standard"], check=True, capture_output=True)
    assert sorted(listed.stdout.decode().split("\0")[:-1]) == sorted(paths(root))
    shutil.rmtree(root)


def test_ignore_files_above_the_folder_count_up_to_the_workspace(tmp_path: Path) -> None:
    tree(tmp_path, {"w/.gitignore": "*.log", "w/d/a.log": "", "w/d/b.txt": "", ".gitignore": "*.txt"})
    assert ["b.txt"] == paths(tmp_path / "w/d", tmp_path / "w")
    assert ["a.log", "b.txt"] == paths(tmp_path / "w/d")


def test_links_are_not_followed_and_repositories_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, {"a": "", ".git/config": "", ".hidden/b": ""})
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to("a")
    assert [".hidden/b", "a"] == paths(tmp_path)
