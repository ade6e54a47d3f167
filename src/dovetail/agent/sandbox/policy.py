"""What a command in the sandbox may see and change, found anew for each command from the rules of the run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from dovetail.agent.environment import own_folders
from dovetail.agent.forbidden import covered, credentials, entries, other_names
from dovetail.agent.patterns import matches_text
from dovetail.agent.permissions import EDIT_TOOLS, READ_TOOLS, Rules
from dovetail.agent.repository import Obeyed, obeyed
from dovetail.agent.settings import dovetail_home
from dovetail.errors import LimitError

# What makes programs of the user, or a later run, do something else: settings, hooks, aliases and pagers of git.
SETTINGS = ".dovetail"
_GIT = (".git/hooks", ".git/config", ".git/config.worktree")
# The hooks and settings of git in submodules and worktrees.
_GIT_DEEPER = (".git/modules/**/hooks", ".git/modules/**/config", ".git/worktrees/*/config.worktree")
# Files that git obeys where they are, and that are not there as a rule: they are removed when a command has made them.
UNWANTED = (".git/commondir", ".git/config.worktree")
_MAX_PATHS = 2000
_MAX_LINKS = 40


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything may be read but what is `hidden`; only `writable` folders may be changed, but not what is `protected`.

    All paths exist and have no symbolic links in them; no path is listed twice.
    """

    writable: tuple[Path, ...]
    protected: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = False


def policy_of(rules: Rules, *, network: bool = False) -> Policy:
    """The policy that the rules imply now; LimitError where there is too much to search or to hide."""
    writable = writable_folders(rules)
    own = [(root, name) for root in writable for name in _protected(root)]
    for root, name in (*own, *((root, ".git") for root in writable)):
        if (root / name).is_symlink():
            raise _unprotected(root / name)
    forbidden = [path for path in _credentials(rules) if not _holds_any(path, writable)]
    forbidden += [path for pattern in rules.path_patterns(READ_TOOLS) for path in covered(*pattern)]
    hidden = _outermost([*_existing(forbidden), *_programs(rules)])
    kept = [root / name for root, name in own]
    kept += [path for root in writable for pattern in _GIT_DEEPER for path in covered(root, pattern)]
    named = [each.path for root in writable for each in obeyed(root, rules.home) if each.path.resolve() != root]
    kept += [*named, *(_fixed(link, writable) for path in named for link in _links(path, writable))]
    kept += [path for pattern in rules.path_patterns(EDIT_TOOLS) for path in covered(*pattern)]
    kept += [dovetail_home()]
    kept += own_folders()
    inside = [path for path in _existing(kept) if any(path.is_relative_to(root) for root in writable)]
    protected = _outermost(inside)
    files = [path for path in protected if path.is_file()]
    files += [path for folder in {SETTINGS, ".git/hooks"} for root in writable for path in entries(root / folder)]
    policy = Policy(
        writable,
        _outermost([*protected, *other_names(files, writable)]),
        tuple(dict.fromkeys((*hidden, *other_names(hidden, writable)))),
        network,
    )
    if len(policy.protected) + len(policy.hidden) > _MAX_PATHS:
        raise LimitError(
            f"the rules forbid more than {_MAX_PATHS} files one by one", "permissions", "forbid whole folders"
        )
    return policy


def _links(path: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
    """The symbolic links on the way to a path that lie where commands can replace them."""
    for _ in range(_MAX_LINKS):
        path = Path(os.path.normpath(path))
        link = next((each for each in (*reversed(path.parents), path) if each.is_symlink()), None)
        if link is None:
            return
        if any(link.is_relative_to(root) for root in roots):
            yield link
        path = link.parent / os.readlink(link) / path.relative_to(link)


def _fixed(link: Path, roots: tuple[Path, ...]) -> Path:
    """The folder to protect so that a link stays what it is: nothing can lie over a link itself."""
    if link.parent in roots:
        raise _unprotected(link)
    return link.parent


def _unprotected(link: Path) -> LimitError:
    return LimitError(
        f"{link.name} is a symbolic link, which the sandbox cannot protect", str(link.parent), "make it a folder"
    )


def writable_folders(rules: Rules) -> tuple[Path, ...]:
    """The workspace, and the folders beside it that there are."""
    return (rules.workspace, *(folder for folder in dict.fromkeys(rules.outside) if folder.is_dir()))


def hiding(policy: Policy, more: Iterable[Path]) -> Policy:
    """The policy with more that is hidden, where it exists."""
    return replace(policy, hidden=_outermost([*policy.hidden, *_existing(more)]))


def protecting(policy: Policy) -> list[Path]:
    """The protected paths and the folders above them and above what is hidden, outermost first.

    A folder that is a mount cannot be moved away, neither to make room for another one of its name nor to take what is
    hidden to a place where no rule finds it.
    """
    protected = set(policy.protected)
    for path in (*policy.protected, *policy.hidden):
        above = list(takewhile(lambda each: each not in policy.writable, path.parents))
        if len(above) < len(path.parents):  # a folder that can be changed is above it
            protected |= {*above}
    return sorted(protected)


def placeholders(rules: Rules) -> Iterator[Obeyed]:
    """Files and folders that have to exist, because only what exists can be protected."""
    roots = writable_folders(rules)
    for root in roots:
        folders = (root / name for name in _protected(root))
        wanted = [Obeyed(path, True) for path in folders if path.suffix == "" and path.name != "config"]
        for each in (*wanted, *obeyed(root, rules.home)):
            inside = any(Path(os.path.normpath(each.path)).is_relative_to(folder) for folder in roots)
            if inside and not os.path.lexists(each.path):
                yield each


def _protected(root: Path) -> tuple[str, ...]:
    """What may never be written: of a repository its hooks and settings, of anything else called .git all of it."""
    repository = (root / ".git/config").is_file()
    return (SETTINGS, *_GIT) if repository else (SETTINGS, ".git")


def _credentials(rules: Rules) -> Iterator[Path]:
    for path in (*credentials(rules.home), dovetail_home()):
        if not rules.opens(path):
            yield path


def _holds_any(folder: Path, paths: Iterable[Path]) -> bool:
    real = folder.resolve()
    return any(path.is_relative_to(real) for path in paths)


def _existing(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            continue
        yield real


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The paths that lie in no other one."""
    outermost: list[Path] = []
    for path in sorted(set(paths)):
        if not (outermost and any(path.is_relative_to(one) for one in outermost)):
            outermost.append(path)
    return tuple(outermost)


def _programs(rules: Rules) -> Iterator[Path]:
    """The files of programs that rules forbid whatever their arguments are; the shell that runs commands stays."""
    patterns = rules.denied_programs()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep) if patterns else []
    for folder in filter(None, folders):
        for path in entries(Path(folder), deepest=1):
            if any(matches_text(pattern, path.name) for pattern in patterns) and path.is_file():
                real = path.resolve()
                # A link to a file of another name is one of many programs in it, such as those of busybox.
                if real.name.startswith(path.name) and path.name not in ("sh", "bash"):
                    yield real
