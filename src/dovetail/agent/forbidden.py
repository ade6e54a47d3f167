"""Files that rules cover and places of keys, looked for on the disk.

covered(anchor, pattern)     what a pattern of a rule covers
other_names(files, roots)    more names of the same files, made by hard links
is_other_name(path, ...)     whether a file has another name that a rule covers
credentials(home)            where people keep keys and passwords
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from dovetail.agent.patterns import matches_path
from dovetail.errors import LimitError

_MAX_ENTRIES = 500_000
_SPECIAL = frozenset("*?[{\\")
# Where people keep keys and passwords: nothing that a command needs to build or test, unless an allow rule names it.
CREDENTIALS = (
    ".ssh .gnupg .aws .azure .kube .docker .netrc .npmrc .pypirc .git-credentials .password-store .vault-token "
    ".bash_history .zsh_history .config/gcloud .config/gh .config/git/credentials .config/op .config/containers "
    ".local/share/keyrings .cargo/credentials .cargo/credentials.toml .gem/credentials .terraform.d .pgpass .my.cnf "
    ".s3cfg .boto .config/rclone .config/hub .config/doctl .fly .mozilla .config/google-chrome .config/chromium "
    # keys of models, as other programs for them keep them
    ".cache/huggingface/token .huggingface/token .claude/.credentials.json .claude.json .codex/auth.json "
    ".gemini/oauth_creds.json .qwen/oauth_creds.json .config/github-copilot .local/share/opencode/auth.json "
    ".config/io.datasette.llm/keys.json .aider.conf.yml .config/openai .config/anthropic "
    ".python_history .node_repl_history .psql_history .mysql_history .local/share/fish/fish_history"
).split()


def real_place(anchor: Path, pattern: str) -> tuple[Path, str]:
    """Where a pattern leads: what it says before its first wildcard without links, and the rest."""
    parts = pattern.split("/")
    fixed = list(takewhile(lambda part: not _SPECIAL & set(part), parts))
    try:
        return Path(os.path.realpath(anchor.joinpath(*fixed))), "/".join(parts[len(fixed) :]) or "**"
    except ValueError:  # no file has such a name
        return anchor, pattern


def lies_in(place: tuple[Path, str], path: Path, *, ignore_case: bool) -> bool:
    """Whether a path is covered by a pattern that counts from a folder."""
    anchor, pattern = place
    if not path.is_relative_to(anchor):
        return False
    # The anchor is no part of the pattern: its name may hold what would be special there.
    below = "/".join(path.relative_to(anchor).parts)
    # A rule on a folder is a rule on everything in it.
    return any(matches_path(each, below, ignore_case=ignore_case) for each in (pattern, f"{pattern}/**"))


def covered(anchor: Path, pattern: str) -> Iterator[Path]:
    """The files and folders that a pattern of a rule covers; what lies in a folder that is covered is not searched."""
    parts = pattern.split("/")
    fixed = list(takewhile(lambda part: not _SPECIAL & set(part), parts))
    if len(fixed) == len(parts):
        yield anchor / pattern
        return
    closed: set[Path] = set()
    deepest = None if "**" in pattern else len(parts) - len(fixed)
    for path in entries(anchor.joinpath(*fixed), closed, deepest):
        if matches_path(pattern, path.relative_to(anchor).as_posix()):
            closed.add(path)
            yield path


def entries(top: Path, closed: Container[Path] = (), deepest: int | None = None) -> Iterator[Path]:
    """Everything below a folder; links are not followed, nor are folders opened that the caller has put in `closed`."""
    todo, seen = [(top, 1)], 0
    while todo:
        folder, depth = todo.pop()
        try:
            with os.scandir(folder) as listing:
                inside = list(listing)
        except OSError:  # what we may not look into, no command may
            continue
        seen += len(inside)
        if seen > _MAX_ENTRIES:
            raise LimitError(
                f"there are more than {_MAX_ENTRIES} files below {top}, too many to look for what a rule forbids",
                "permissions",
                "name the folder in the rule",
            )
        for entry in inside:
            path = Path(entry.path)
            yield path
            if depth != deepest and path not in closed and entry.is_dir(follow_symlinks=False):
                todo.append((path, depth + 1))


def other_names(files: Iterable[Path], roots: Iterable[Path]) -> Iterator[Path]:
    """Other names, in the folders that may be changed, of files that have several, alone or in a folder among them."""
    known = {*files}
    wanted = {*shared(known, roots)}
    for root in roots if wanted else ():
        for path in entries(root, known):
            if path not in known and _identity(path.lstat()) in wanted:
                yield path


def shared(files: Iterable[Path], roots: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """What identifies the files that have several names, alone or in a folder that lies in one of the roots."""
    for path in files:
        inside = path.is_dir() and any(path.is_relative_to(root) for root in roots)
        for each in (path, *(entries(path) if inside else ())):
            try:
                status = each.stat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                yield _identity(status)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def is_other_name(path: Path, places: Iterable[tuple[Path, str]], roots: tuple[Path, ...]) -> bool:
    """Whether a file is another name of one that patterns cover, counted from their folders."""
    try:
        status = path.stat()
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_nlink == 1:
        return False
    try:
        return _identity(status) in _shared_now(tuple(places), roots, int(time.monotonic()))
    except LimitError:  # it cannot be told
        return True


@lru_cache(maxsize=4)
def _shared_now(
    places: tuple[tuple[Path, str], ...], roots: tuple[Path, ...], _second: int
) -> frozenset[tuple[int, int]]:
    """The files of a search, looked for once a second: a search of many files asks for each of them."""
    return frozenset(shared((path for place in places for path in covered(*place)), roots))


def resolved_places(places: tuple[Path, ...]) -> tuple[Path, ...]:
    """The places without links, found anew once a second: a search of many files asks for each of them."""
    return _resolved_now(places, int(time.monotonic()))


@lru_cache(maxsize=4)
def _resolved_now(places: tuple[Path, ...], _second: int) -> tuple[Path, ...]:
    return tuple(Path(os.path.realpath(place)) for place in places)


def credentials(home: Path) -> Iterator[Path]:
    """Where people keep keys and passwords, whether it is there or not."""
    return (home / name for name in CREDENTIALS)
