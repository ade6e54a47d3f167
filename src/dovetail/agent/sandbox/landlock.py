"""A policy as rights of Landlock, handed to a launcher that takes them on and becomes the command."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from dovetail.agent.environment import PYTHON
from dovetail.agent.sandbox.policy import Policy, protecting

_LAUNCHER = Path(__file__).with_name("confine.py")
_CREATE_RULESET = 444
_VERSION = 1
# The first version that keeps files from being cut off.
_OLDEST_ABI = 3
_MACHINES = ("x86_64", "aarch64")
_DEV = Path("/dev")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def landlock_abi() -> int:
    """The version of Landlock that the kernel has, 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    call = ctypes.CDLL(None, use_errno=True).syscall
    return max(0, int(call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def landlock_problem() -> str:
    """Why Landlock cannot be used here, "" where it can."""
    abi = landlock_abi()
    if abi == 0:
        return "the kernel has no Landlock, or does not allow it here"
    if abi < _OLDEST_ABI:
        return f"the kernel has version {abi} of Landlock, and {_OLDEST_ABI} is needed"
    if platform.machine() not in _MACHINES:
        return f"it is not known how to turn the network off on {platform.machine()}"
    return "" if PYTHON else "there is no Python to start commands with"


def landlock_command(policy: Policy, scratch: Path, *, mounts: bool) -> tuple[tuple[str, ...], int]:
    """The words that stand before the command, and the descriptor from which the launcher reads its orders.

    Landlock gives rights on whole folders and cannot take a part of one back. What is hidden or protected is therefore
    covered by `mounts` where the command may have its own, and else left out of all folders that get rights: then no
    command can make anything right in a folder that holds something protected.
    """
    without: set[Path] = set() if mounts else {*policy.hidden, *policy.protected}
    # Disks and the memory of the machine are files in /dev, which root may read.
    readable, listed = _trees([Path("/")], {_DEV, *(without & set(policy.hidden))})
    changeable, _ = _trees([*policy.writable, scratch], without)
    orders = {
        "mounts": mounts,
        "writable": [str(path) for path in sorted({*policy.writable, scratch})],
        "protected": [str(path) for path in protecting(policy)],
        "read_only": [str(path) for path in policy.protected],
        "hidden": [str(path) for path in policy.hidden],
        "abi": landlock_abi(),
        "read": [str(path) for path in readable],
        "list": [str(path) for path in listed],
        "write": [str(path) for path in changeable],
        "devices": [path for path in _DEVICES if os.path.exists(path)],
        "network": policy.network,
    }
    descriptor = os.memfd_create("dovetail-sandbox")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(json.dumps(orders).encode("utf-8", "surrogateescape"))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return (PYTHON, "-I", "-S", str(_LAUNCHER), str(descriptor)), descriptor


def _trees(roots: Collection[Path], without: set[Path]) -> tuple[list[Path], list[Path]]:
    """The paths that hold all of the roots but what is left out, and the folders above what is left out.

    A right on a folder is a right on everything in it, so that a folder with something in it that is left out is
    replaced by what else is in it.
    """
    opened = {parent for path in without for parent in path.parents}
    whole: list[Path] = []
    listed: list[Path] = []
    todo = [root for root in roots if root not in without]
    while todo:
        path = todo.pop()
        if path not in opened:
            whole.append(path)
        else:
            listed.append(path)
            todo += [child for child in _children(path) if child not in without]
    return whole, listed


def _children(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as scanned:
            for entry in scanned:
                if not entry.is_symlink():
                    yield Path(entry.path)
    except OSError:
        return
