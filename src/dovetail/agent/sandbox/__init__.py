"""The sandbox of the operating system in which shell commands run.

open_sandbox("auto", rules)   bubblewrap where it works, else Landlock, else none
Sandbox.confined(...)         the command line that runs a command under the policy of this moment

In it the workspace can be changed and the rest only read; `.dovetail`, `.git/hooks` and `.git/config` cannot be
changed, files that rules forbid to read and the places where people keep keys are hidden, and there is no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from dovetail.agent.environment import program_outside, without_keys
from dovetail.agent.permissions import SHELL, Rules
from dovetail.agent.repository import Obeyed
from dovetail.agent.sandbox.bubblewrap import bubblewrap_command
from dovetail.agent.sandbox.landlock import landlock_command, landlock_problem
from dovetail.agent.sandbox.policy import UNWANTED, Policy, hiding, placeholders, policy_of, writable_folders
from dovetail.agent.sandbox.services import services
from dovetail.errors import InputError

SandboxChoice = Literal["auto", "required", "bubblewrap", "landlock", "off"]
# Worst first: a project may ask for more than the user does, not for less.
CHOICES: tuple[SandboxChoice, ...] = ("off", "auto", "landlock", "bubblewrap", "required")
PROBE_S = 10.0


class SandboxError(InputError):
    """A sandbox is required, and this machine has none that works."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command line ready to be started, with the descriptors that it inherits and the variables that it needs."""

    words: tuple[str, ...]
    descriptors: tuple[int, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


class Sandbox(Protocol):
    """A way to run commands."""

    @property
    def name(self) -> str:
        """The kind: bubblewrap, landlock or none."""

    @property
    def notice(self) -> str:
        """What the model has to know about it, "" or a sentence with a space before it."""

    def confined(self, words: Sequence[str], folder: Path) -> AbstractContextManager[Launch]:
        """How to start the command in the folder; what the launch needs is let go after the context."""

    def close(self) -> None:
        """Remove what the sandbox has put on the disk."""


class NoSandbox:
    """Commands run with all rights of the user."""

    name = "none"
    notice = ""

    @contextmanager
    def confined(self, words: Sequence[str], folder: Path) -> Iterator[Launch]:
        """The command line as it is."""
        yield Launch(tuple(words))

    def close(self) -> None:
        """Nothing is to be removed."""


# The sandboxes that were not closed yet, for a run that is ended by force.
_open: set[_System] = set()


def close_sandboxes() -> None:
    """Close every sandbox that is still open."""
    for sandbox in list(_open):
        sandbox.close()


class _System(ABC):
    """What the sandboxes of the operating system share: the policy, and a folder for temporary files."""

    name = ""

    def __init__(self, rules: Rules, network: bool) -> None:
        online = "" if network else ", and there is no network"
        self.notice = f" It runs in a sandbox: only the workspace and $TMPDIR can be written{online}."
        self._rules = rules
        self.network = network
        self._scratch = Path(tempfile.mkdtemp(prefix="dovetail-")).resolve()
        self._made: list[Path] = []
        _open.add(self)

    def close(self) -> None:
        """Remove the temporary files, and what is empty and stood for something protected."""
        _open.discard(self)
        shutil.rmtree(self._scratch, ignore_errors=True)
        for place in reversed(self._made):
            with suppress(OSError):  # somebody may have put something there meanwhile, and it is theirs
                if place.is_dir():
                    place.rmdir()
                elif not place.stat().st_size:
                    place.unlink()

    @contextmanager
    def confined(self, words: Sequence[str], folder: Path) -> Iterator[Launch]:
        """The command under the policy of this moment."""
        roots = writable_folders(self._rules)
        for place in placeholders(self._rules):
            self._stand_in(place)
        unwanted = [path for root in roots for name in UNWANTED if not os.path.lexists(path := root / name)]
        try:
            with self.launch(policy_of(self._rules, network=self.network), tuple(words), folder) as launch:
                yield launch
        finally:
            for path in unwanted:
                if os.path.lexists(path) and not path.is_dir():
                    path.unlink()

    def _stand_in(self, place: Obeyed) -> None:
        """Make what is not there, with the folders above it, so that it can be protected."""
        absent = [path for path in place.path.parents if not path.exists()]
        if not os.access((absent or [place.path])[-1].parent, os.W_OK):  # nor may commands make it then
            return
        for folder in (*reversed(absent), *([place.path] if place.is_folder else [])):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)
        if not place.is_folder:
            place.path.touch()
            self._made.append(place.path)

    @abstractmethod
    def launch(self, policy: Policy, words: tuple[str, ...], folder: Path) -> AbstractContextManager[Launch]:
        """How to start the command under a policy."""


class Bubblewrap(_System):
    """Namespaces of the kernel, set up by bubblewrap: what is not to be seen is not there."""

    name = "bubblewrap"

    @contextmanager
    def launch(self, policy: Policy, words: tuple[str, ...], folder: Path) -> Iterator[Launch]:
        """A command line that sets it all up."""
        without = hiding(policy, services())
        command, descriptor = bubblewrap_command(without, self._scratch, folder)
        try:
            yield Launch((*command, *words), (descriptor,), {"TMPDIR": "/tmp"})
        finally:
            os.close(descriptor)


class Landlock(_System):
    """Rights that the kernel takes from the command before it starts, without any namespace."""

    name = "landlock"

    def __init__(self, rules: Rules, network: bool, *, mounts: bool = True) -> None:
        super().__init__(rules, network)
        self._mounts = mounts
        if not mounts:
            self.notice += " Nothing new can be made right in the top folder of the workspace."

    @contextmanager
    def launch(self, policy: Policy, words: tuple[str, ...], folder: Path) -> Iterator[Launch]:
        """A command line that sets it all up."""
        command, descriptor = landlock_command(policy, self._scratch, mounts=self._mounts)
        try:
            yield Launch((*command, *words), (descriptor,), {"TMPDIR": str(self._scratch)})
        finally:
            os.close(descriptor)


def open_sandbox(choice: SandboxChoice, rules: Rules, *, network: bool = False) -> tuple[Sandbox, str]:
    """The best sandbox that works here, and why there is none; SandboxError where one is required.

    A run that offers no shell needs none, unless one is asked for.
    """
    if choice == "off" or (choice == "auto" and rules.registers(SHELL).verdict != "allow"):
        return NoSandbox(), ""
    problems: list[str] = []
    kinds: dict[str, list[Callable[[Rules, bool], Bubblewrap | Landlock]]] = {
        "bubblewrap": [Bubblewrap],
        "landlock": [Landlock, partial(Landlock, mounts=False)],
    }
    for name, makers in kinds.items():
        for make in makers if choice in ("auto", "required", name) else []:
            sandbox = make(rules, network)
            problem = _problem(sandbox, rules)
            if not problem:
                return sandbox, ""
            sandbox.close()
            problems.append(f"{name}: {problem}")
    if choice == "auto":
        return NoSandbox(), "; ".join(problems)
    raise SandboxError(
        f"--sandbox {choice}: no sandbox works here ({'; '.join(problems)})",
        "--sandbox",
        "install bubblewrap (apt-get install bubblewrap), or run where user namespaces or Landlock are allowed",
    )


def _problem(sandbox: Bubblewrap | Landlock, rules: Rules) -> str:
    """Why the sandbox does not work here, found out by running something in it; "" where it does.

    The policy of the probe is the plainest one: a repository must not be able to make the sandbox look broken.
    """
    if rules.workspace == Path("/"):
        return "the workspace is the whole file system"
    if isinstance(sandbox, Bubblewrap) and not program_outside("bwrap", writable_folders(rules)):
        return "bwrap is not installed"
    if isinstance(sandbox, Landlock) and (problem := landlock_problem()):
        return problem
    plainest = Policy((rules.workspace,), network=sandbox.network)
    with sandbox.launch(plainest, ("/bin/true",), rules.workspace) as launch:
        try:
            done = subprocess.run(
                launch.words,
                pass_fds=launch.descriptors,
                env={**without_keys(), **launch.variables},
                cwd=rules.workspace,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    errors = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if done.returncode == 0 else (errors or [f"exit code {done.returncode}"])[-1]
