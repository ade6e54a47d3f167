"""The public surface is what `__all__` says, and it is complete."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import dovetail
from dovetail import errors, public


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

    assert version("dovetail") == dovetail.__version__
