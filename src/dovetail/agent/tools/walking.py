"""Files below a folder in a fixed order, without those that .gitignore files leave out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dovetail.agent.patterns import matches_path
from dovetail.agent.tools.text import Encoding, open_regular
from dovetail.agent.types import ToolError

MAX_DEPTH = 200
_MAX_IGNORE_BYTES = 1 << 20
_ALWAYS_LEFT_OUT = frozenset((".git", ".hg", ".svn"))


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One line of a .gitignore file."""

    folder: str  # where the file stands, with a slash at the end
    pattern: str
    anchored: bool
    folders_only: bool
    negated: bool

    def means(self, path: str, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        below = path.removeprefix(self.folder)
        return matches_path(self.pattern, below if self.anchored else below.rpartition("/")[2], braces=False)


def walk(root: Path, top: Path | None = None, *, ignored: bool = False) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Each regular file below `root`, with its path from there; links are not followed.

    The .gitignore files from `top` (a folder above) down to the file count, unless `ignored` asks for everything.
    Names come in order, folders among files, so that the same tree always gives the same list.
    """
    rules: list[_Ignore] = []
    if not ignored:
        above = [folder for folder in (root, *root.parents) if top is not None and folder.is_relative_to(top)]
        for folder in reversed(above or [root]):
            rules += _rules(folder)
    todo: list[tuple[Iterator[os.DirEntry[str]], str, list[_Ignore]]] = [(_entries(root), "", rules)]
    while todo:
        entries, prefix, rules = todo[-1]
        entry = next(entries, None)
        if entry is None:
            todo.pop()
            continue
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in _ALWAYS_LEFT_OUT or _left_out(rules, entry.path, is_folder):
            continue
        if is_folder and len(todo) < MAX_DEPTH:
            below = rules if ignored else rules + _rules(Path(entry.path))
            todo.append((_entries(Path(entry.path)), f"{prefix}{entry.name}/", below))
        elif entry.is_file(follow_symlinks=False):
            yield prefix + entry.name, entry


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as scanned:
            return iter(sorted(scanned, key=lambda entry: entry.name))
    except OSError:  # a folder that may not be read has nothing to show
        return iter(())


def _left_out(rules: list[_Ignore], path: str, is_folder: bool) -> bool:
    return next((not rule.negated for rule in reversed(rules) if rule.means(path, is_folder)), False)


def _rules(folder: Path) -> list[_Ignore]:
    file = folder / ".gitignore"
    if not file.is_file():
        return []
    try:
        with open_regular(file) as opened:
            lines = Encoding().decode(opened.read(_MAX_IGNORE_BYTES)).splitlines()
    except ToolError:
        return []
    return [rule for line in lines if (rule := _rule(f"{folder}/".replace("//", "/"), line))]


def _rule(folder: str, line: str) -> _Ignore | None:
    line = line if line.endswith("\\ ") else line.rstrip()
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[1:] if negated else line
    body = line.rstrip("/")
    if not body:
        return None
    return _Ignore(folder, body.removeprefix("/"), "/" in body, line.endswith("/"), negated)
