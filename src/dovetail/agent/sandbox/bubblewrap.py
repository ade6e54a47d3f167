"""A policy as a command line of bubblewrap."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from dovetail.agent.environment import program_outside
from dovetail.agent.sandbox.policy import Policy, protecting

# Folders of temporary files and of sockets, among them those of container and key services: each run has its own.
_PRIVATE = ("/tmp", "/run")
_KERNEL = tuple(f"/proc/{name}" for name in "sys sysrq-trigger irq bus fs scsi acpi mtrr dynamic_debug".split())
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
# What root needs to work on files of others, as in containers of CI; none of these opens a mount or reads a raw disk.
_ROOT_CAPABILITIES = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN")


def bubblewrap_command(policy: Policy, scratch: Path, folder: Path) -> tuple[tuple[str, ...], int]:
    """The words that stand before the command, and the descriptor from which bubblewrap reads its filter of calls."""
    from dovetail.agent.sandbox.confine import AF_UNIX, INTERNET, filter_of

    descriptor = os.memfd_create("dovetail-filter")
    program = filter_of((AF_UNIX, *INTERNET))
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    words = [program_outside("bwrap", policy.writable) or "/usr/bin/bwrap", "--die-with-parent", *_NAMESPACES]
    words += [] if policy.network else ["--unshare-net"]
    words += ["--seccomp", str(descriptor)] if program else []
    words += ["--cap-drop", "ALL"]
    if os.geteuid() == 0:
        words += [word for name in _ROOT_CAPABILITIES for word in ("--cap-add", name)]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root writes settings of the kernel here without any capability.
    words += [word for path in _KERNEL if os.path.exists(path) for word in ("--ro-bind", path, path)]
    words += ["--bind", str(scratch), "/tmp"]
    words += ["--tmpfs", "/run"] if Path("/run").is_dir() else []
    needed = tuple(_needed(policy))
    for path in needed:
        words += ["--ro-bind", str(path), str(path)]
    # What holds a folder that may be changed is hidden first, and that folder put back into it.
    for path in sorted(policy.writable):
        words += ["--bind", str(path), str(path)]
    for path in protecting(policy):
        words += ["--bind" if path not in policy.protected else "--ro-bind", str(path), str(path)]
    for path in policy.hidden:
        if not _is_private(path) or any(path.is_relative_to(root) for root in (*policy.writable, *needed)):
            words += _hiding(path)
    return (*words, "--chdir", str(folder), "--"), descriptor


def _needed(policy: Policy) -> Iterator[Path]:
    """What is read of the folders that are replaced: programs on the path, Python, names of hosts, the neighborhood of
    the workspace.
    """
    needed = {Path(sys.prefix), Path(sys.base_prefix)}
    needed |= {Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")}
    if policy.network:
        needed.add(Path("/etc/resolv.conf").resolve())
    for path in sorted(needed):
        real = path.resolve()
        if _is_private(real) and real.exists() and not any(real.is_relative_to(root) for root in policy.writable):
            # A virtual environment is the folder above its programs.
            home = real.parent if real.name == "bin" and not _is_root(real.parent) else real
            yield home
    for path in policy.writable:
        for place in map(Path, _PRIVATE):
            if path.is_relative_to(place) and path != place:
                yield place / path.relative_to(place).parts[0]


def _is_private(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _PRIVATE)


def _is_root(path: Path) -> bool:
    return str(path) in (*_PRIVATE, "/")


def _hiding(path: Path) -> list[str]:
    if path.is_dir():
        return ["--perms", "0000", "--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]
