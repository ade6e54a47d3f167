"""The launcher of a sandboxed command: it gives its rights away for good, and then becomes the command.

Runs as a script of its own with nothing but the standard library: confine.py DESCRIPTOR COMMAND...
The descriptor holds orders as JSON; see `landlock_command`.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import struct
import sys

TYPE_CHECKING = False  # `typing` would take half of the time that this script needs to start
if TYPE_CHECKING:
    from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_SET_PDEATHSIG, _SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 1, 38, 22, 2
_MOUNT_SETATTR, _AT_RECURSIVE = 442, 0x8000
_NEW_MOUNTS, _NEW_USER, _NEW_PROCESSES = 0x20000, 0x10000000, 0x20000000
_PROC_FLAGS = 1 | 2 | 4 | 8  # read-only, no set-user-ID, no devices, no programs
_READ_ONLY, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 4, 32, 4096, 16384, 1 << 18
_DROP_CAPABILITY, _KEPT_CAPABILITIES = 24, (0, 1, 3)  # owners of files, their rights, and their modes

# Rights on files, by the bit that the kernel gives them; the last three came with later versions.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
# Removing and making whatever there is, but no devices, by which root would reach the disks themselves.
_OF_FOLDERS = sum(1 << bit for bit in (4, 5, 7, 8, 9, 10, 12))
_MAKE_DEVICES = 1 << 6 | 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_CHANGE = _WRITE_FILE | _OF_FOLDERS | _REFER | _TRUNCATE
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
# Abstract sockets and signals stay inside, from this version on.
_SCOPES, _SCOPES_ABI = 0b11, 6

# What the kernel calls the machine, and the numbers there of the call `socket` and of those on the user's keyrings.
_MACHINES = {"x86_64": (0xC000003E, 41, (248, 249, 250)), "aarch64": (0xC00000B7, 198, (217, 218, 219))}
_IO_URING_SETUP = 425  # through which sockets are opened past any filter
_OTHER_ABI = 0x40000000  # calls of x86_64 in their 32-bit form
AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
# Others reach beyond a network of one's own: AF_VSOCK the host of a virtual machine, with what listens there.
INTERNET = (_AF_INET, _AF_INET6, _AF_NETLINK)
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000


def main() -> None:
    """Take the orders on and become the command."""
    with open(int(sys.argv[1]), "rb") as file:
        orders = json.loads(file.read().decode("utf-8", "surrogateescape"))
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if orders["mounts"]:
        _cover(orders)
        _go_on_among_own_processes()
    _drop_capabilities()
    _prctl(_SET_NO_NEW_PRIVS, 1)
    _restrict_files(orders)
    _restrict_calls(INTERNET if orders["network"] else ())  # Landlock knows nothing of local services
    os.execvp(sys.argv[2], sys.argv[2:])


def _cover(orders: dict[str, Any]) -> None:
    """In mounts of its own, make what is protected read-only and cover what is hidden."""
    user, group = os.geteuid(), os.getegid()
    _checked(_LIBC.unshare(_NEW_MOUNTS | _NEW_PROCESSES | (_NEW_USER if user else 0)))
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _mount("none", "/", _RECURSIVE | _PRIVATE)
    for path in orders["writable"]:
        _mount(path, path, _BIND | _RECURSIVE)
    # Landlock alone would leave modes, owners and times of files outside to be changed.
    _set_read_only("/", True)
    for path in orders["writable"]:
        _set_read_only(path, False)
    read_only = set(orders["read_only"])
    for path in orders["protected"]:
        _mount(path, path, _BIND | _RECURSIVE)
        if path in read_only:
            _mount("none", path, _BIND | _REMOUNT | _READ_ONLY | _kept(path))
    for path in orders["hidden"]:
        if os.path.isdir(path):
            _mount("tmpfs", path, _READ_ONLY, b"tmpfs", b"mode=000,size=4k")
        else:
            _mount("/dev/null", path, _BIND)
            _mount("none", path, _BIND | _REMOUNT | _READ_ONLY | _NO_DEVICES | _kept(path))
    os.chdir(os.getcwd())  # into the mount that may lie over the folder now


def _go_on_among_own_processes() -> None:
    """Go on as a child of the first process of a namespace; the two above wait, and end with the code of the command.

    Once that first process ends, or is killed because the run has ended, the kernel ends all others in it.
    """
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    if first := os.fork():
        os._exit(_exit_code(os.waitpid(first, 0)[1]))
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    # A container may not allow it; the one that is there shows this process under another number.
    _LIBC.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(_PROC_FLAGS), None)
    if command := os.fork():
        while True:
            pid, status = os.wait()
            if pid == command:
                os._exit(_exit_code(status))
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _exit_code(status: int) -> int:
    """The exit code of a process, 128 and more where a signal ended it, as shells count."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _mount(source: str, target: str, flags: int, kind: bytes | None = None, options: bytes | None = None) -> None:
    _checked(_LIBC.mount(os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), options))


def _set_read_only(path: str, value: bool) -> None:
    attributes = struct.pack("=QQQQ", int(value), int(not value), 0, 0)
    size = ctypes.c_size_t(len(attributes))
    for recursive in (_AT_RECURSIVE, 0):  # a mount below that was read-only before stays so
        if _LIBC.syscall(_MOUNT_SETATTR, -100, os.fsencode(path), ctypes.c_uint(recursive), attributes, size) == 0:
            return
    _checked(-1)


def _kept(path: str) -> int:
    """The flags of a mount that a remount has to repeat, because their owner has locked them."""
    return os.statvfs(path).f_flag & (_READ_ONLY | 2 | _NO_DEVICES | 8 | 1024 | 2048)


def _drop_capabilities() -> None:
    """What root may do beyond its own files, but for the rights that containers of CI need on files of others."""
    for number in range(64):
        if number not in _KEPT_CAPABILITIES:
            _LIBC.prctl(_DROP_CAPABILITY, *(ctypes.c_ulong(value) for value in (number, 0, 0, 0)))


def _restrict_files(orders: dict[str, Any]) -> None:
    abi = orders["abi"]
    handled = _READ | _CHANGE | _MAKE_DEVICES | (_IOCTL_DEV if abi >= 5 else 0)
    attributes = struct.pack("=QQQ", handled, 0, _SCOPES if abi >= _SCOPES_ABI else 0)
    size = 24 if abi >= _SCOPES_ABI else 8
    ruleset = _checked(_LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    for path in orders["read"]:
        _grant(ruleset, path, _READ)
    for path in orders["list"]:
        _grant(ruleset, path, _READ_DIR)
    for path in orders["write"]:
        _grant(ruleset, path, handled & ~_MAKE_DEVICES)
    for path in orders["devices"]:
        _grant(ruleset, path, handled)
    _checked(_LIBC.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
    os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # what has gone meanwhile needs no rights
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            rights &= _ON_FILES
        rule = struct.pack("=Qi", rights, descriptor)
        _checked(_LIBC.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0)))
    finally:
        os.close(descriptor)


def _restrict_calls(families: tuple[int, ...]) -> None:
    program = filter_of(families)
    code = ctypes.create_string_buffer(program, len(program))
    filters = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    _prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(filters))


def filter_of(families: tuple[int, ...]) -> bytes:
    """A program for the kernel that refuses the user's keyrings, and sockets of all but these families; empty where it
    is not known how to write it.
    """
    if platform.machine() not in _MACHINES:
        return b""
    machine, socket, keyrings = _MACHINES[platform.machine()]
    load, equal, greater, give = 0x20, 0x15, 0x35, 0x06

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("=HBBI", code, then, otherwise, value)

    def when(value: int, given: int) -> list[bytes]:
        return [step(equal, value, 0, 1), step(give, given)]

    refused = [line for call in (_IO_URING_SETUP, *keyrings) for line in when(call, _REFUSE)]
    allowed = [line for family in families for line in when(family, _ALLOW)]
    return b"".join(
        [
            *(step(load, 4), step(equal, machine, 1, 0), step(give, _KILL)),
            *(step(load, 0), step(greater, _OTHER_ABI, 0, 1), step(give, _REFUSE)),
            *refused,
            *(step(equal, socket, 1, 0), step(give, _ALLOW)),
            *(step(load, 16), *allowed, step(give, _REFUSE)),
        ]
    )


def _prctl(option: int, *values: int) -> None:
    given = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _checked(_LIBC.prctl(option, *given))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    main()
