"""What git obeys in a working tree beside its own folder: hooks, more settings, and programs that its settings name.

obeyed(root, home)    files and folders that a run must not write, although they look like any other
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAX_BYTES = 1 << 20
_MAX_DEPTH = 10
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)", re.ASCII)
_VALUE = re.compile(r"\s*([\w-]+)\s*=\s*(.*)", re.ASCII)
_WORD = re.compile(r"[\w.,/~@%+-]+")
# Settings that name files which git only reads, and sections full of other names.
_ONLY_READ = ("file", "template")
_NAMES = frozenset("branch remote user submodule".split())


class Obeyed(NamedTuple):
    """A file, or a folder with all that is in it; what is not there yet is obeyed as soon as it is."""

    path: Path
    is_folder: bool = False


class _Setting(NamedTuple):
    section: str
    key: str
    value: str


def obeyed(root: Path, home: Path) -> Iterator[Obeyed]:
    """The hooks, the included settings and the programs of the repository that `root` lies in, as the settings of the
    repository and those of the user name them.

    What lies elsewhere is named too: the caller knows what can be written at all.
    """
    top, folders = _repository(root)
    elsewhere = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    own = Path(os.environ.get("GIT_CONFIG_GLOBAL") or home / ".gitconfig")
    files = [Path("/etc/gitconfig"), elsewhere / "git" / "config", own]
    files += [folder / name for folder in folders for name in ("config", "config.worktree")]
    seen: set[Path] = set()
    for file in files:
        yield from _named(file, top, home, seen, _MAX_DEPTH)


def _repository(root: Path) -> tuple[Path, list[Path]]:
    """The top of the working tree, and the folders with the settings of its repository."""
    for top in (root, *root.parents):
        place = top / ".git"
        if place.is_file():  # a worktree or a submodule, whose repository is elsewhere
            place = top / _text(place).removeprefix("gitdir:").strip()
        if (place / "HEAD").exists():  # else it only looks like a repository, and git looks further up
            shared = place / (_text(place / "commondir").strip() or ".")
            return top, [shared, place]
    return root, []


def _named(file: Path, top: Path, home: Path, seen: set[Path], depth: int) -> Iterator[Obeyed]:
    """What the settings in a file name, and in those that it includes."""
    if file in seen or not depth:
        return
    seen.add(file)
    for section, key, value in _settings(_text(file)):
        path = Path(value.replace("~", str(home), 1) if value.startswith("~/") else value)
        if section == "core" and key == "hookspath":
            hooks = top / path
            # The scripts that husky's own hooks call lie beside their folder.
            yield Obeyed(hooks.parent if hooks.name == "_" else hooks, is_folder=True)
        elif section in ("include", "includeif") and key == "path":
            yield Obeyed(file.parent / path)
            yield from _named(file.parent / path, top, home, seen, depth - 1)
        elif section not in _NAMES and not key.endswith(_ONLY_READ):
            words = (
                top / Path(os.path.expanduser(word)) if word.startswith("~/") else top / word for word in _words(value)
            )
            yield from (Obeyed(program) for program in words if program.is_file())


def _words(value: str) -> list[str]:
    """The words of a value that may name a file."""
    return [word for word in _WORD.findall(value) if word.strip("./~")][:100]


def _settings(text: str) -> Iterator[_Setting]:
    section = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        if heading := _SECTION.match(line):
            section = heading[1].lower()
            line = line.partition("]")[2]
        if (setting := _VALUE.match(line)) and (value := _plain(setting[2])):
            yield _Setting(section.partition(".")[0], setting[1].lower(), value)


def _plain(value: str) -> str:
    """A value without quotes and comment."""
    text = re.sub(r'"((?:\\.|[^"\\])*)"|[#;].*', lambda match: match[1] or "", value)
    return re.sub(r"\\(.)", r"\1", text).strip()


def _text(file: Path) -> str:
    """The beginning of a regular file; nothing of anything else."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
