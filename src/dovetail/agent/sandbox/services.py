"""The sockets of services in the file system: of agents for keys, containers, buses, development servers.

services()    their paths, as the kernel and the environment name them at this moment
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_BOUND = Path("/proc/net/unix")
# Number, count, protocol, flags, type, state, inode; then the name that the socket was bound to.
_LINE = re.compile(r"(?:\S+ +){6}\S+ (.+)")
_IN_VALUE = re.compile(r"/[^\s:,;=%]+")


def services(environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The sockets that somebody listens on, or that a variable of the environment names."""
    named = (word for value in environ.values() for word in _IN_VALUE.findall(value) if len(value) < 4096)
    for name in dict.fromkeys((*_bound_names(), *named)):
        path = Path(name)
        try:
            if stat.S_ISSOCK(path.stat().st_mode):
                yield path
        except (OSError, ValueError):
            continue


def _bound_names() -> Iterator[str]:
    names = [match[1] for match in map(_LINE.fullmatch, _text().splitlines()) if match is not None]
    relative = [name for name in names if name[0] not in "/@"]
    yield from (name for name in names if name.startswith("/"))
    if relative:  # to the folder in which the service was when it began, which is most often the one in which it is
        yield from (os.path.join(folder, name) for folder in _folders() for name in relative)


def _folders() -> Iterable[str]:
    folders: dict[str, None] = {}
    for process in Path("/proc").glob("[0-9]*/cwd"):
        try:
            folders[os.readlink(process)] = None
        except OSError:
            continue
    return folders


def _text() -> str:
    try:
        return os.fsdecode(_BOUND.read_bytes())
    except OSError:
        return ""
