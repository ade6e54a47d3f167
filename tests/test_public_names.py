"""The public surface is what `__all__` says, it is complete, and nothing of it goes unnoticed.

    python tests/test_public_names.py      records the surface of a release in public_names.txt

What was recorded and is gone breaks somebody's program; docs/versions.md says how a name may go.
"""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dovetail
from dovetail import errors, public

RECORD = Path(__file__).with_name("public_names.txt")
MODULES = [
    "dovetail",
    "dovetail.dialects",
    "dovetail.formats",
    "dovetail.grammar.export",
    "dovetail.integrations.transformers",
    "dovetail.models",
    "dovetail.parsing.adapters",
    "dovetail.serving",
    "dovetail.testing",
]


def surface() -> Iterator[str]:
    """Each public name, method and parameter, a line each."""
    for name in MODULES:
        module = importlib.import_module(name)
        for each in names_of(module):
            yield from told(f"{name}.{each}", getattr(module, each))


def names_of(module: ModuleType) -> list[str]:
    """The names that a module lists, or the public ones that it defines itself."""
    listed = getattr(module, "__all__", None)
    return listed or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def told(path: str, value: Any) -> Iterator[str]:
    yield path
    if inspect.isclass(value):
        yield from parameters(path, value)
        for name in sorted(dir(value)):
            # What pydantic, enumerations, exceptions and protocols bring is theirs.
            if not name.startswith("_") and ours(value, name):
                yield f"{path}.{name}"
                yield from parameters(f"{path}.{name}", getattr(value, name))
    elif inspect.isfunction(value):
        yield from parameters(path, value)


def ours(kind: type, name: str) -> bool:
    return any(name in vars(base) and base.__module__.startswith("dovetail") for base in kind.__mro__)


def parameters(path: str, called: Callable[..., Any]) -> Iterator[str]:
    if not callable(called):
        return
    try:
        signature = inspect.signature(called)
    except ValueError:  # of the core, which shows none
        return
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "args", "kwargs", "data"):
            yield f"{path}({parameter.name})"


def test_nothing_that_was_recorded_is_gone() -> None:
    gone = set(RECORD.read_text().splitlines()) - set(surface())
    assert set() == gone, "a name goes only after a release that warned of it: docs/versions.md"


def test_the_record_is_one_of_the_whole_surface() -> None:
    recorded = RECORD.read_text().splitlines()
    assert recorded == sorted(set(recorded))
    assert set(MODULES) == {module for module in MODULES if any(line.startswith(f"{module}.") for line in recorded)}


def test_all_is_sorted_and_lists_every_public_name() -> None:
    known = [
        name
        for name, value in vars(public).items()
        if not name.startswith("_") and (not isinstance(value, ModuleType) or name in dovetail.__all__)
    ]
    assert dovetail.__all__ == sorted(known)


def test_every_public_name_is_found_where_nothing_is_loaded_yet() -> None:
    code = """
import sys, dovetail
assert len(sys.modules) < 100, len(sys.modules)
assert dovetail.errors.InputError
for name in (*dovetail.__all__, *dir(dovetail)):
    getattr(dovetail, name)
for name in ("compiled", "__wrapped__"):
    assert not hasattr(dovetail, name)
from dovetail import *
compile, run, Dialect
"""
    assert b"" == subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True).stderr


def test_every_room_can_be_the_first_one() -> None:
    """Each in a child that has nothing of the package yet."""
    code = """
import importlib, os, pkgutil, sys, dovetail
failed = 0
for found in pkgutil.iter_modules(dovetail.__path__, "dovetail."):
    if found.name.endswith("__main__"):
        continue
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(found.name)
        except BaseException as error:
            print(found.name, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    failed += os.waitpid(child, 0)[1] != 0
sys.exit(failed)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stdout)


def test_every_error_is_public_and_documented() -> None:
    classes = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert classes <= set(dovetail.__all__)


def test_every_public_class_and_function_says_what_it_is_for() -> None:
    assert [] == [name for name in dovetail.__all__ if not inspect.getdoc(getattr(dovetail, name))]


def test_the_version_is_the_one_of_the_package() -> None:
    from importlib.metadata import version

    assert version("dovetail-lm") == dovetail.__version__


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for line in sorted(set(surface()))))
